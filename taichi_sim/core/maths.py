"""Small linear algebra inside kernels: every function takes 2x2 and 3x3 matrices, single and double precision.

All are plain ``ti.func`` without captured numbers. Functions with ``_adjoint`` in their name are the hand-written
reverse mode of the function above them; ``x_bar`` is the derivative of a scalar with respect to ``x``. None of them
relies on comparisons with NaN, because Taichi compiles with fast math.
"""

from taichi_sim.runtime import ti

__all__ = [
    "add_scaled_identity",
    "axial",
    "cofactor",
    "double_dot",
    "identity",
    "polar_rotation",
    "polar_rotation_adjoint",
    "safe_norm",
    "safe_norm_adjoint",
    "sinhc",
    "skew",
    "symmetric_eigen",
    "symmetric_twice",
    "trace",
]


@ti.func
def identity(like):
    """Unit matrix of the size of ``like``."""
    return ti.Matrix.identity(float, like.n)


@ti.func
def trace(a):
    """Sum of the diagonal."""
    total = a[0, 0]
    for i in ti.static(range(1, a.n)):
        total = total + a[i, i]
    return total


@ti.func
def add_scaled_identity(a, s):
    """``a + s I``."""
    result = a
    for i in ti.static(range(a.n)):
        result[i, i] = result[i, i] + s
    return result


@ti.func
def symmetric_twice(a):
    """``a + aᵀ``."""
    return a + a.transpose()


@ti.func
def double_dot(a, b):
    """``a : b``, the sum of the products of equal entries."""
    return (a * b).sum()


@ti.func
def cofactor(a):
    """Derivative of the determinant: ``det(a) a⁻ᵀ`` where ``a`` is regular, and finite everywhere.

    The adjugate is its transpose.
    """
    result = a
    if ti.static(a.n == 2):
        result = ti.Matrix([[a[1, 1], -a[1, 0]], [-a[0, 1], a[0, 0]]])
    else:
        for i in ti.static(range(3)):
            for j in ti.static(range(3)):
                result[i, j] = (
                    a[(i + 1) % 3, (j + 1) % 3] * a[(i + 2) % 3, (j + 2) % 3]
                    - a[(i + 1) % 3, (j + 2) % 3] * a[(i + 2) % 3, (j + 1) % 3]
                )
    return result


@ti.func
def safe_norm(v):
    """Euclidean norm whose value and gradient at 0 are 0 (below 1e-15 it falls off quadratically)."""
    squared = v.norm_sqr()
    return squared / ti.sqrt(ti.max(squared, 1e-30))


@ti.func
def safe_norm_adjoint(v, norm_bar):
    """``v_bar`` of :func:`safe_norm`."""
    squared = v.norm_sqr()
    slope = 1.0 / ti.sqrt(ti.max(squared, 1e-30))
    if squared < 1e-30:
        slope *= 2.0
    return v * (norm_bar * slope)


@ti.func
def skew(w):
    """3x3 matrix of the cross product: ``skew(w) x = w × x``."""
    return ti.Matrix([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


@ti.func
def axial(a):
    """Vector with ``axial(a) · w = a : skew(w)`` of a 3x3 matrix; ``2 w`` for ``a = skew(w)``."""
    return ti.Vector([a[2, 1] - a[1, 2], a[0, 2] - a[2, 0], a[1, 0] - a[0, 1]])


@ti.func
def sinhc(x):
    """``sinh(x) / x``, 1 at 0."""
    squared = x * x
    result = 1.0 + squared / 6.0 * (1.0 + squared / 20.0 * (1.0 + squared / 42.0 * (1.0 + squared / 72.0)))
    if squared > 0.04:
        result = 0.5 * (ti.exp(x) - ti.exp(-x)) / x
    return result


@ti.func
def symmetric_eigen(a):
    """Eigenvalues (in no order) and eigenvectors, columns of a rotation, of a symmetric matrix, by Jacobi's rotations:
    also where eigenvalues are equal. Exact to rounding of the largest eigenvalue."""
    axes = identity(a)
    for _ in range(ti.static(1 if a.n == 2 else 8)):
        rest = a[0, 1] * a[0, 1]
        if ti.static(a.n == 3):
            rest = rest + a[0, 2] * a[0, 2] + a[1, 2] * a[1, 2]
        if rest > 1e-34 * a.norm_sqr():
            for p, q in ti.static([(0, 1)] if a.n == 2 else [(0, 1), (0, 2), (1, 2)]):
                apart = a[q, q] - a[p, p]
                twice = 2.0 * a[p, q]
                t = twice / (ti.abs(apart) + ti.sqrt(apart * apart + twice * twice) + 1e-30)
                if apart < 0.0:
                    t = -t
                cosine = 1.0 / ti.sqrt(1.0 + t * t)
                sine = t * cosine
                for k in ti.static(range(a.n)):
                    first, second = axes[k, p], axes[k, q]
                    axes[k, p] = cosine * first - sine * second
                    axes[k, q] = sine * first + cosine * second
                for k in ti.static(range(a.n)):
                    if ti.static(k not in (p, q)):
                        first, second = a[k, p], a[k, q]
                        a[k, p] = cosine * first - sine * second
                        a[k, q] = sine * first + cosine * second
                        a[p, k] = a[k, p]
                        a[q, k] = a[k, q]
                turned = t * a[p, q]
                a[p, p] = a[p, p] - turned
                a[q, q] = a[q, q] + turned
                a[p, q] = 0.0
                a[q, p] = 0.0
    values = ti.Vector([a[i, i] for i in ti.static(range(a.n))])
    return values, axes


# --- the rotation of a deformation -------------------------------------------------------------------------------


@ti.func
def polar_rotation(F):
    """Proper rotation ``R`` (det +1) that maximises ``tr(Rᵀ F)``.

    For det F > 0 this is the rotation of the polar decomposition ``F = R S``; for an inverted ``F`` it stays a
    rotation, and ``S = Rᵀ F`` is symmetric with its smallest eigenvalue negative. Where several rotations are equally
    good (``F = 0``, or the two smallest signed stretches cancel) one of them is returned, the identity for ``F = 0``.
    """
    R = F
    if ti.static(F.n == 2):
        R = _polar_rotation_2d(F)
    else:
        R = _polar_rotation_3d(F)
    return R


@ti.func
def polar_rotation_adjoint(F, R, R_bar):
    """``F_bar`` of :func:`polar_rotation`, given its result ``R``.

    With ``S = Rᵀ F`` and ``Y = tr(S) I - S``: ``dR = R skew(Y⁻¹ axial(Rᵀ dF))``. Where ``Y`` is singular the rotation
    jumps; a determinant of ``Y`` below ``1e-8 tr(S)³`` is raised to that, so the result stays finite (and falls short
    of the derivative within about 1e-4 of a doubly degenerate reflection, where that grows without bound).
    """
    F_bar = F
    if ti.static(F.n == 2):
        S_trace = R[0, 0] * F[0, 0] + R[1, 0] * F[1, 0] + R[0, 1] * F[0, 1] + R[1, 1] * F[1, 1]
        size = ti.abs(F[0, 0]) + ti.abs(F[0, 1]) + ti.abs(F[1, 0]) + ti.abs(F[1, 1])
        turn = R[0, 0] * R_bar[1, 0] - R[1, 0] * R_bar[0, 0] + R[0, 1] * R_bar[1, 1] - R[1, 1] * R_bar[0, 1]
        turn /= ti.max(S_trace, 1e-8 * size + 1e-20)
        F_bar = turn * ti.Matrix([[-R[1, 0], -R[1, 1]], [R[0, 0], R[0, 1]]])
    else:
        y = _solve_spin(R.transpose() @ F, axial(R.transpose() @ R_bar))
        for i in ti.static(range(3)):  # R skew(y)
            F_bar[i, 0] = R[i, 1] * y[2] - R[i, 2] * y[1]
            F_bar[i, 1] = R[i, 2] * y[0] - R[i, 0] * y[2]
            F_bar[i, 2] = R[i, 0] * y[1] - R[i, 1] * y[0]
    return F_bar


@ti.func
def _polar_rotation_2d(F):
    a = F[0, 0] + F[1, 1]
    b = F[1, 0] - F[0, 1]
    squared = a * a + b * b
    scale = 1.0 / ti.sqrt(ti.max(squared, 1e-30))
    c, s = a * scale, b * scale
    if squared < 1e-30:
        c, s = 1.0, 0.0
    return ti.Matrix([[c, -s], [s, c]])


@ti.func
def _polar_rotation_3d(F):
    """Closed form after Markley (1993), "Attitude determination using vector observations: a fast optimal matrix
    algorithm", J. Astronaut. Sci. 41(2): 261-280.

    The sum ``q`` of the signed stretches is the largest root of ``(q² - |F|²)² - 8 q det F - 4 |cof F|² = 0``, found
    by Newton's method from an upper bound, from where it falls monotonically. ``R`` is then rational in ``F``, with
    the product of the sums of two stretches below the line; one orthonormalising step squares what error is left in
    ``q``. Where that product is small or ``q`` has not converged (thin, flat or inverted ``F``) the slower
    :func:`_polar_rotation_hard` takes over.
    """
    G = F * (1.0 / ti.sqrt(ti.max(F.norm_sqr() / 3.0, 1e-30)))  # |G|² = 3: G = I stays exactly I
    K = cofactor(G)
    areas = K.norm_sqr()
    volume = G[0, 0] * K[0, 0] + G[0, 1] * K[0, 1] + G[0, 2] * K[0, 2]
    q = ti.sqrt(3.0 + 2.0 * ti.sqrt(3.0 * areas))
    step = q
    for _ in range(5):
        if step > 2e-5:
            excess = q * q - 3.0
            step = (excess * excess - 8.0 * q * volume - 4.0 * areas) / ti.max(4.0 * q * excess - 8.0 * volume, 1e-6)
            q = q - step
    half = 0.5 * (q * q - 3.0)
    product = half * q - volume
    R = G
    if product > 0.25 and step <= 2e-5:
        X = ((half + 3.0) * G + q * K - G @ (G.transpose() @ G)) * (1.0 / product)
        R = 1.5 * X - 0.5 * (X @ (X.transpose() @ X))
    else:
        R = _polar_rotation_hard(G)
    return R


@ti.func
def _polar_rotation_hard(G):
    """Same for any ``G`` of norm at most √3: dominant eigenvector of Davenport's 4x4 matrix by repeated squaring.

    The eigenvector is the quaternion of ``R``. Each squaring doubles the exponent of the power iteration, so 32 of
    them separate eigenvalues that differ by 1e-8. Two Newton steps on the symmetry of ``Rᵀ G`` remove the rest.
    """
    t = trace(G)
    u = axial(G)
    B = ti.Matrix(
        [
            [t, u[0], u[1], u[2]],
            [u[0], 2.0 * G[0, 0] - t, G[0, 1] + G[1, 0], G[0, 2] + G[2, 0]],
            [u[1], G[0, 1] + G[1, 0], 2.0 * G[1, 1] - t, G[1, 2] + G[2, 1]],
            [u[2], G[0, 2] + G[2, 0], G[1, 2] + G[2, 1], 2.0 * G[2, 2] - t],
        ]
    )
    B = add_scaled_identity(B, 3.1)  # its eigenvalues lie between -3 and 3: all positive now
    for _ in range(32):
        B = B @ B
        B = B * (1.0 / trace(B))
    best = ti.Vector([B[0, 0], B[1, 0], B[2, 0], B[3, 0]])
    largest = B[0, 0]
    for j in ti.static(range(1, 4)):
        if B[j, j] > largest:
            largest = B[j, j]
            best = ti.Vector([B[0, j], B[1, j], B[2, j], B[3, j]])
    return _rotation_of(best[0], ti.Vector([best[1], best[2], best[3]]))


@ti.func
def _rotation_of(w, v):
    """Rotation of the quaternion ``(w, v)``, which need not have length 1."""
    squared = v.norm_sqr()
    s = 2.0 / (w * w + squared)
    return add_scaled_identity((v.outer_product(v) + w * skew(v)) * s, 1.0 - s * squared)


@ti.func
def _solve_spin(S, b):
    """``(tr(S) I - S)⁻¹ b`` of a symmetric ``S``; the determinant is kept above ``1e-8 tr(S)³``."""
    t = trace(S)
    p, q, r = t - S[0, 0], t - S[1, 1], t - S[2, 2]
    u, v, w = -S[1, 2], -S[0, 2], -S[0, 1]
    a00, a11, a22 = q * r - u * u, p * r - v * v, p * q - w * w
    a12, a02, a01 = v * w - p * u, w * u - q * v, u * v - r * w
    determinant = p * a00 + w * a01 + v * a02
    scale = 1.0 / ti.max(determinant, 1e-8 * t * t * t + 1e-30)
    return scale * ti.Vector(
        [
            a00 * b[0] + a01 * b[1] + a02 * b[2],
            a01 * b[0] + a11 * b[1] + a12 * b[2],
            a02 * b[0] + a12 * b[1] + a22 * b[2],
        ]
    )
