"""Points of networks and grains as spheres to the particles of a continuum: who meets whom, the impulses, the adjoint.

Before particles are scattered, each pair of a particle and a point within ``band`` of touch gets the impulse of ``law``
in closed form, with the reduced mass of both. Where a particle meets several points, or a point many particles, its
mass is split among its contacts by weights that fall from 1 at touch to 0 at the end of the band (mass splitting, Tonge
et al. 2012): contacts do not know of each other, no equations are solved, momentum is conserved to rounding, kinetic
energy never grows but by what takes penetration back, and neither side may be too light. What one step leaves of an
approach the next ones take.

Why not let points take part in the grid as particles without stress: that is simpler, and no-slip; but a grid gives all
that shares a cell one velocity. Measured for a row of points two a cell, quadratic splines: of a wave four cells long a
transfer to the grid and back keeps 53 % a step (APIC 90 %), of one two cells long 14 % (62 %). A net would lose its own
vibrations within some steps, touched or not, and grains would stick. A contact leaves both alone as soon as they part.

Friction acts at the centres of both, which are a radius apart, and spins neither: momentum is kept, angular momentum
only where it is 0 (normal impulses lie on the line between the centres).

The order of pairs is that of particles in memory: it depends on neither threads nor workers.
"""

from dataclasses import dataclass

import numpy as np

from taichi_sim.core.array import Array
from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling.law import meet, meet_adjoint
from taichi_sim.solvers.coupling.records import ask
from taichi_sim.solvers.particles.arrays import HELD
from taichi_sim.solvers.particles.search import bucket_at, cell_beside, cell_of
from taichi_sim.solvers.rigid.rotation import flat, lift

#: Columns of ``touch``: distance of centres at which they touch, share of penetration taken back per second, fastest
#: separation, Coulomb coefficient, sliding speed below which friction falls off.
REACH, RATE, CAP, MU, SLOW = 0, 1, 2, 3, 4

#: Columns of ``pair``: particle, point, whether the pair is the first of the particle, and of the point.
PARTICLE, POINT, OPENS, BEGINS = 0, 1, 2, 3

#: Columns of ``sizes``: points and particles of an environment, workers of it, laws, room for pairs of one substep and
#: particle on average, room in the pool.
POINTS, PARTICLES, SHARES, LAWS, EACH, POOL, BUCKETS = 0, 1, 2, 3, 4, 5, 6

#: Nearer than this, m, a pair has no normal and does not meet.
COINCIDENT = 1e-12


@dataclass(frozen=True)
class SpheresPlan:
    """Sizes of one compiled scene; ``band``, m, is the distance beyond touch at which a pair is looked at."""

    dim: int
    envs: int
    partitions: int
    laws: int
    rows: int
    particles: int
    points: int
    band: float
    each: int = 6

    @property
    def buckets(self) -> int:
        """Buckets of the hash of cells, a power of two."""
        return 1 << max(3, (self.points - 1).bit_length())


def declare(dim: int) -> tuple[Array, ...]:
    """All arrays but the pool."""
    v = ("dim",)

    def scratch(name: str, element: tuple, domain: str | tuple[str, ...], doc: str, dtype: str = "real") -> Array:
        return Array(name, element, domain, "scratch", "mixed", doc, dtype=dtype)

    return (
        Array("touch", (5,), "point", "param", "m, 1/s, m/s, 1, m/s", "of a point, columns above", exclusive=True),
        scratch("sphere_tag", (4,), "local", "what ``search.sort`` asks for: nothing", "int"),
        scratch("sphere_radius", (), "point", "1"),
        scratch("sphere_reach", (3,), "one", "nothing, nothing, 1 / cell"),
        scratch("sphere_extent", (), "extent", "sizes as ``search.sort`` asks for", "int"),
        scratch("sphere_bucket", (), "buckets", "first place of a bucket in order", "int"),
        scratch("sphere_bucket_of", (), "point", "bucket of a point", "int"),
        scratch("sphere_order", (), "point", "points sorted by bucket", "int"),
        scratch("near_pair", (2,), "near", "pairs of each worker", "int"),
        scratch("near_count", (), "law_worker", "their number", "int"),
        scratch("pairs", (2,), ("slot", "env"), "first pair and number of pairs in the pool", "int"),
        scratch("particle_weight", (2,), "particle", "sum of weights of a particle, its adjoint"),
        scratch("point_weight", (2,), "point", "sum of weights of a point, its adjoint"),
        scratch("particle_push", v, "particle", "impulse on a particle, or adjoint of its velocity"),
        scratch("point_push", v, "point", "impulse on a point, or adjoint of its velocity"),
        scratch("sphere_band", (), "one", "distance beyond touch at which a pair is looked at"),
        scratch("sizes", (), "sizes", "columns above", "int"),
        scratch("sphere_flag", (2,), "env", "slot + 1 and number of pairs where there was no room", "int"),
    )


#: Pairs of all substeps of a segment, and the velocities of their two sides before contact (after it, when swapped).
POOL_ARRAYS = (
    Array("pair", (4,), "pool", "scratch", "1", "columns above", dtype="int"),
    Array("particle_before", ("dim",), "pool", "scratch", "m/s", "of the particle, at its first pair"),
    Array("point_before", ("dim",), "pool", "scratch", "m/s", "of the point, at its first pair"),
)


def domain_sizes(p: SpheresPlan, slots: int) -> dict[str, int]:
    """Sizes of all domains but the pool."""
    return {
        "point": p.envs * p.points,
        "local": p.points,
        "one": 1,
        "extent": 11,
        "buckets": p.envs * (p.buckets + 1),
        "near": p.envs * p.particles * p.each,
        "law_worker": p.laws * p.envs * p.partitions,
        "slot": slots,
        "env": p.envs,
        "particle": p.envs * p.particles,
        "sizes": 7,
    }


def footprint(plan: SpheresPlan, precision: str, slots: int, pool: int) -> int:
    """Bytes the arrays take, with room for ``pool`` pairs an environment."""
    sizes = domain_sizes(plan, slots) | {"pool": plan.envs * pool}
    total = 0
    for a in declare(plan.dim) + POOL_ARRAYS:
        count = int(np.prod(a.domain_shape(sizes), dtype=np.int64))
        each = a.bytes_each(precision, plan.dim)
        total += count * each
        if a.role == "param":  # adjoints of parameters are always f64
            total += count * each * (2 if precision == "f32" else 1)
    return total


@ti.func
def find_pairs(dim: ti.template(), w, k, workers, mpm_x: ti.template(), mpm_work: ti.template(), x: ti.template(),
               touch: ti.template(), bucket: ti.template(), order: ti.template(), reach: ti.template(),
               band: ti.template(), sizes: ti.template(), near_pair: ti.template(), near_count: ti.template()):
    """List the near pairs of one worker, law by law."""
    e = w // sizes[SHARES]
    i0, b0 = e * sizes[POINTS], e * (sizes[BUCKETS] + 1)
    for l in range(sizes[LAWS]):
        begin, end = mpm_work[2 * (l * workers + w)], mpm_work[2 * (l * workers + w) + 1]
        count = 0
        for p in range(begin, end):
            here = mpm_x[k, p]
            home = cell_of(here, reach[0][2])
            for o in range(ti.static(3**dim)):
                cell = cell_beside(home, o)
                b = bucket_at(cell, sizes[BUCKETS])
                start = 0
                if b > 0:
                    start = bucket[b0 + b - 1]
                for place in range(start, bucket[b0 + b]):
                    q = i0 + order[i0 + place]
                    far = touch[q][REACH] + band[0]
                    if touch[q][REACH] > 0.0 and (here - x[k, q]).norm_sqr() < far * far:
                        if (cell_of(x[k, q], reach[0][2]) - cell).norm_sqr() == 0:
                            if count < sizes[EACH] * (end - begin):
                                near_pair[sizes[EACH] * begin + count] = ti.Vector([p, q])
                            count = count + 1
        near_count[l * workers + w] = count


@ti.func
def keep_pairs(e, k, workers, mpm_work: ti.template(), sizes: ti.template(), near_pair: ti.template(),
               near_count: ti.template(), pair: ti.template(), pairs: ti.template(), flag: ti.template()):
    """Move what all workers of an environment found into the pool, behind the substep before."""
    first = e * sizes[POOL]
    if k > 0:
        first = pairs[k - 1, e][0] + pairs[k - 1, e][1]
    total, crowded = 0, 0
    for l in range(sizes[LAWS]):
        for w in range(e * sizes[SHARES], (e + 1) * sizes[SHARES]):
            count = near_count[l * workers + w]
            total = total + count
            at = 2 * (l * workers + w)
            if count > sizes[EACH] * (mpm_work[at + 1] - mpm_work[at]):
                crowded = 1
    if crowded == 1 or first + total > (e + 1) * sizes[POOL]:
        if flag[e][0] == 0:
            flag[e] = ti.Vector([ti.select(crowded == 1, -1, 1) * (k + 1), total])
        total = 0
    pairs[k, e] = ti.Vector([first, total])
    if total > 0:
        at = first
        for l in range(sizes[LAWS]):
            for w in range(e * sizes[SHARES], (e + 1) * sizes[SHARES]):
                begin = sizes[EACH] * mpm_work[2 * (l * workers + w)]
                for j in range(near_count[l * workers + w]):
                    pair[at] = ti.Vector([near_pair[begin + j][0], near_pair[begin + j][1], 0, 0])
                    at = at + 1


@ti.func
def side_by_side(dim: ti.template(), k, p, q, mpm_x: ti.template(), x: ti.template(), touch: ti.template(),
                 band: ti.template()):
    """Distance, normal (to the particle), gap and weight of a pair."""
    away = lift(dim, mpm_x[k, p]) - lift(dim, x[k, q])
    far = ti.sqrt(away.norm_sqr())
    n = away / ti.max(far, COINCIDENT)
    gap = far - touch[q][REACH]
    return far, n, gap, ti.max(0.0, ti.min(1.0, 1.0 - gap / band[0]))


@ti.func
def weigh(dim: ti.template(), e, k, mpm_x: ti.template(), x: ti.template(), touch: ti.template(), band: ti.template(),
          pair: ti.template(), pairs: ti.template(), particle_weight: ti.template(), point_weight: ti.template(),
          particle_push: ti.template(), point_push: ti.template()):
    """Sums of weights of both sides of all pairs; their pushes are set to nothing."""
    begin, end = pairs[k, e][0], pairs[k, e][0] + pairs[k, e][1]
    for i in range(begin, end):
        p, q = pair[i][PARTICLE], pair[i][POINT]
        particle_weight[p] = ti.Vector([0.0, 0.0])
        point_weight[q] = ti.Vector([0.0, 0.0])
        particle_push[p] = 0.0 * mpm_x[k, p]
        point_push[q] = 0.0 * x[k, q]
    for i in range(begin, end):
        p, q = pair[i][PARTICLE], pair[i][POINT]
        _far, _n, _gap, weight = side_by_side(dim, k, p, q, mpm_x, x, touch, band)
        particle_weight[p][0] = particle_weight[p][0] + weight
        point_weight[q][0] = point_weight[q][0] + weight


@ti.func
def shares(weight, m, M, held, all_of_particle, all_of_point):
    """Masses that a pair has of its two sides, and the reduced mass; a point that is held is as heavy as can be."""
    mine = m * weight / all_of_particle
    theirs = M * weight / all_of_point
    both = mine
    if held == 0:
        both = mine * theirs / (mine + theirs)
    return mine, theirs, both


@ti.func
def meet_all(dim: ti.template(), e, k, epoch, mpm_x: ti.template(), mpm_v: ti.template(), mpm_id: ti.template(),
             mpm_tag: ti.template(), mpm_material: ti.template(), mpm_gravity: ti.template(), mpm_step: ti.template(),
             rows, x: ti.template(), free_velocity: ti.template(), mass: ti.template(), tag: ti.template(),
             touch: ti.template(), band: ti.template(), sizes: ti.template(), pair: ti.template(),
             pairs: ti.template(), particle_weight: ti.template(), point_weight: ti.template(),
             particle_push: ti.template(), point_push: ti.template(), particle_before: ti.template(),
             point_before: ti.template()):
    """Impulses of all pairs of slot ``k``; both sides get their velocity after contact and leave the one before."""
    begin, end, h = pairs[k, e][0], pairs[k, e][0] + pairs[k, e][1], mpm_step[e][0]
    for i in range(begin, end):
        p, q = pair[i][PARTICLE], pair[i][POINT]
        m = mpm_material[e * rows + mpm_tag[mpm_id[epoch, p]][0]][1]
        far, n, gap, weight = side_by_side(dim, k, p, q, mpm_x, x, touch, band)
        if far > COINCIDENT and weight > 0.0:
            held = tag[q - e * sizes[POINTS]][HELD]
            _mine, _theirs, both = shares(weight, m, mass[q], held, particle_weight[p][0], point_weight[q][0])
            b, _g, _r, _c, _h = ask(gap, touch[q][RATE], touch[q][CAP], h)
            u = lift(dim, mpm_v[k, p] + h * mpm_gravity[e] - free_velocity[k, q])
            push = flat(dim, meet(u, n, both, 1.0, b, touch[q][MU], touch[q][SLOW]))
            particle_push[p] = particle_push[p] + push
            point_push[q] = point_push[q] - push
    for i in range(begin, end):
        p, q = pair[i][PARTICLE], pair[i][POINT]
        if particle_weight[p][1] == 0.0:
            particle_weight[p][1] = 1.0
            pair[i][OPENS] = 1
            m = mpm_material[e * rows + mpm_tag[mpm_id[epoch, p]][0]][1]
            particle_before[i] = mpm_v[k, p]
            mpm_v[k, p] = mpm_v[k, p] + particle_push[p] / m
        if point_weight[q][1] == 0.0:
            point_weight[q][1] = 1.0
            pair[i][BEGINS] = 1
            point_before[i] = free_velocity[k, q]
            if tag[q - e * sizes[POINTS]][HELD] == 0:
                free_velocity[k, q] = free_velocity[k, q] + point_push[q] / mass[q]


@ti.func
def meet_all_adjoint(dim: ti.template(), e, k, epoch, mpm_x: ti.template(), mpm_v: ti.template(),
                     mpm_id: ti.template(), mpm_tag: ti.template(), mpm_material: ti.template(),
                     mpm_gravity: ti.template(), mpm_step: ti.template(), rows, x: ti.template(),
                     free_velocity: ti.template(), mass: ti.template(), tag: ti.template(), touch: ti.template(),
                     band: ti.template(), sizes: ti.template(), pair: ti.template(), pairs: ti.template(),
                     particle_weight: ti.template(), point_weight: ti.template(), particle_push: ti.template(),
                     point_push: ti.template(), d_mpm_x: ti.template(), d_mpm_v: ti.template(),
                     d_mpm_material: ti.template(), d_mpm_gravity: ti.template(), d_mpm_step: ti.template(),
                     d_x: ti.template(), force_bar: ti.template(), d_mass: ti.template(), d_touch: ti.template()):
    """Adjoint of :func:`meet_all` after :func:`weigh`: ``d_mpm_v`` and ``force_bar`` come in as adjoints of velocities
    after contact and become those before.

    Twice over the pairs: what a pair's share does to the sums of weights is known only after all of them.
    """
    begin, end, h = pairs[k, e][0], pairs[k, e][0] + pairs[k, e][1], mpm_step[e][0]
    h_bar = 0.0 * h
    for i in range(begin, end):
        p, q = pair[i][PARTICLE], pair[i][POINT]
        row = e * rows + mpm_tag[mpm_id[epoch, p]][0]
        m, M = mpm_material[row][1], mass[q]
        far, n, gap, weight = side_by_side(dim, k, p, q, mpm_x, x, touch, band)
        if far > COINCIDENT and weight > 0.0:
            held = tag[q - e * sizes[POINTS]][HELD]
            mine, theirs, both = shares(weight, m, M, held, particle_weight[p][0], point_weight[q][0])
            b, by_gap, by_rate, by_cap, by_h = ask(gap, touch[q][RATE], touch[q][CAP], h)
            u = lift(dim, mpm_v[k, p] + h * mpm_gravity[e] - free_velocity[k, q])
            mu, vs = touch[q][MU], touch[q][SLOW]
            to, back = lift(dim, d_mpm_v[p]) / m, lift(dim, force_bar[q]) / M
            if held == 1:
                back = 0.0 * back
            push = meet(u, n, both, 1.0, b, mu, vs)
            u_bar, n_bar, both_bar, _alpha, b_bar, mu_bar, vs_bar = meet_adjoint(u, n, both, 1.0, b, mu, vs, to - back)
            # masses: of the velocities, and of the shares
            mine_bar, theirs_bar = both_bar, 0.0 * both_bar
            if held == 0:
                mine_bar = both_bar * (both / mine) * (both / mine)
                theirs_bar = both_bar * (both / theirs) * (both / theirs)
            m_bar = mine_bar * mine / m - to.dot(push) / m
            M_bar = theirs_bar * theirs / M + back.dot(push) / M
            d_mpm_material[0, row][1] = d_mpm_material[0, row][1] + ti.cast(m_bar, ti.f64)
            d_mass[q] = d_mass[q] + ti.cast(M_bar, ti.f64)
            particle_weight[p][1] = particle_weight[p][1] - mine_bar * mine / particle_weight[p][0]
            point_weight[q][1] = point_weight[q][1] - theirs_bar * theirs / point_weight[q][0]
            weight_bar = (mine_bar * mine + theirs_bar * theirs) / weight
            # what is asked for, velocities, places
            gap_bar = b_bar * by_gap
            if gap > 0.0:
                gap_bar = gap_bar - weight_bar / band[0]
            u_flat = flat(dim, u_bar)
            h_bar = h_bar + b_bar * by_h + u_flat.dot(mpm_gravity[e])
            d_mpm_gravity[0, e] = d_mpm_gravity[0, e] + ti.cast(h * u_flat, ti.f64)
            particle_push[p] = particle_push[p] + u_flat
            point_push[q] = point_push[q] - u_flat
            d_touch[q] = d_touch[q] + ti.cast(
                ti.Vector([-gap_bar, b_bar * by_rate, b_bar * by_cap, mu_bar, vs_bar]), ti.f64)
            x_bar = flat(dim, gap_bar * n + (n_bar - n_bar.dot(n) * n) / far)
            d_mpm_x[p] = d_mpm_x[p] + x_bar
            d_x[q] = d_x[q] - x_bar
    for i in range(begin, end):
        p, q = pair[i][PARTICLE], pair[i][POINT]
        far, n, gap, weight = side_by_side(dim, k, p, q, mpm_x, x, touch, band)
        if far > COINCIDENT and weight > 0.0 and gap > 0.0:
            gap_bar = -(particle_weight[p][1] + point_weight[q][1]) / band[0]
            d_touch[q][REACH] = d_touch[q][REACH] - ti.cast(gap_bar, ti.f64)
            d_mpm_x[p] = d_mpm_x[p] + flat(dim, gap_bar * n)
            d_x[q] = d_x[q] - flat(dim, gap_bar * n)
        if pair[i][OPENS] == 1:
            d_mpm_v[p] = d_mpm_v[p] + particle_push[p]
        if pair[i][BEGINS] == 1:
            force_bar[q] = force_bar[q] + point_push[q]
    d_mpm_step[0, e][0] = d_mpm_step[0, e][0] + ti.cast(h_bar, ti.f64)
