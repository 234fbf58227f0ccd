// Forward MLS-MPM in 3-D, written for one machine: what the product's forward step is held against.
//
// Particles are sorted by pencils of 4 x 4 cells and by height in them; pencils of one colour of four never touch the
// same node, so the scatter needs no atomics. The grid is cleared and updated where there are particles only. A node is
// one vector of momentum and mass. Speaks the protocol of worker.py: words on standard input, JSON on standard output.
//
// usage: plain_reference PARTICLES nodes pad steps threads dt gravity friction mass volume mu lambda muscle vx vy vz
//   PARTICLES: float32 rows of x, y, z (metres, with the pad) and 1 where the particle belongs to the muscle, else 0
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

typedef float Vec4 __attribute__((vector_size(16)));

struct alignas(32) Particle {
  float x[3], v[3], C[9], F[9], muscle;
};

struct Setting {
  int nodes, pad, steps, threads;
  float dt, gravity, friction, mass, volume, mu, lambda, muscle, velocity[3], dx, inv_dx;
};

static const int kPencil = 4, kSortEvery = 10;

static inline Vec4 splat(float a) { return Vec4{a, a, a, a}; }

// ln a: a series for the volume changes of an elastic body, where the library's call would cost a tenth of the step.
static inline float logarithm(float a) {
  if (a < 0.6f || a > 1.6f) return std::log(a);
  float z = (a - 1) / (a + 1), z2 = z * z;
  return 2 * z * (1 + z2 * (1 / 3.f + z2 * (1 / 5.f + z2 * (1 / 7.f + z2 * (1 / 9.f)))));
}

struct Stencil {
  int base[3];
  float fx[3], w[3][3];
  Stencil(const Particle& p, float inv_dx) {
    for (int d = 0; d < 3; d++) {
      float q = p.x[d] * inv_dx;
      base[d] = int(q - 0.5f);
      float f = fx[d] = q - base[d];
      w[d][0] = 0.5f * (1.5f - f) * (1.5f - f);
      w[d][1] = 0.75f - (f - 1) * (f - 1);
      w[d][2] = 0.5f * (f - 0.5f) * (f - 0.5f);
    }
  }
};

class Simulation {
 public:
  Simulation(const Setting& setting, std::vector<Particle> start)
      : s(setting), start(std::move(start)), across((s.nodes + kPencil - 1) / kPencil), pencils(across * across) {
    size_t bytes = sizeof(Vec4) * s.nodes * s.nodes * s.nodes;
    grid = static_cast<Vec4*>(aligned_alloc(64, (bytes + 63) / 64 * 64));
    memset(static_cast<void*>(grid), 0, bytes);
    first.resize(pencils + 1);
    active.resize(pencils);
    omp_set_num_threads(s.threads);
  }

  void run() {
    particles = start;
    for (int step = 0; step < s.steps; step++) {
      if (step % kSortEvery == 0) sort();
      for_columns([&](Vec4* column, int, int) { memset(static_cast<void*>(column), 0, sizeof(Vec4) * s.nodes); });
      scatter();
      for_columns([&](Vec4* column, int i, int j) { update(column, i, j); });
#pragma omp parallel for
      for (size_t p = 0; p < particles.size(); p++) gather(particles[p]);
    }
  }

  double mean_height() const {
    double sum = 0;
    for (const Particle& p : particles) sum += p.x[2];
    return sum / particles.size() - s.pad * s.dx;
  }

 private:
  Setting s;
  std::vector<Particle> start, particles, spare;
  int across, pencils;
  Vec4* grid;
  std::vector<int> first, key, count;
  std::vector<char> active;

  void sort() {
    size_t n = particles.size();
    key.resize(n);
    spare.resize(n);
    count.assign(size_t(pencils) * s.nodes + 1, 0);
    for (size_t p = 0; p < n; p++) {
      int c[3];
      for (int d = 0; d < 3; d++) c[d] = int(particles[p].x[d] * s.inv_dx - 0.5f);
      key[p] = ((c[0] / kPencil) * across + c[1] / kPencil) * s.nodes + c[2];
      count[key[p] + 1]++;
    }
    for (size_t k = 1; k < count.size(); k++) count[k] += count[k - 1];
    for (int b = 0; b <= pencils; b++) first[b] = count[size_t(b) * s.nodes];
    for (size_t p = 0; p < n; p++) spare[count[key[p]]++] = particles[p];
    particles.swap(spare);
    std::fill(active.begin(), active.end(), 0);
    for (int b = 0; b < pencils; b++) {
      if (first[b + 1] == first[b]) continue;
      for (int i = std::max(b / across - 1, 0); i <= std::min(b / across + 1, across - 1); i++)
        for (int j = std::max(b % across - 1, 0); j <= std::min(b % across + 1, across - 1); j++)
          active[i * across + j] = 1;
    }
  }

  template <typename Body>
  void for_columns(Body body) {
#pragma omp parallel for schedule(dynamic, 4)
    for (int b = 0; b < pencils; b++) {
      if (!active[b]) continue;
      for (int i = b / across * kPencil; i < std::min((b / across + 1) * kPencil, s.nodes); i++)
        for (int j = b % across * kPencil; j < std::min((b % across + 1) * kPencil, s.nodes); j++)
          body(grid + (size_t(i) * s.nodes + j) * s.nodes, i, j);
    }
  }

  void scatter() {
    int half = (across + 1) / 2;
    for (int colour = 0; colour < 4; colour++) {
#pragma omp parallel for schedule(dynamic, 1)
      for (int b = 0; b < half * half; b++) {
        int i = b / half * 2 + colour % 2, j = b % half * 2 + colour / 2;
        if (i >= across || j >= across) continue;
        for (int p = first[i * across + j]; p < first[i * across + j + 1]; p++) add(prepare(particles[p]));
      }
    }
  }

  // What a particle adds to the nodes around it: weights and an affine (momentum, mass).
  struct Load {
    Stencil at;
    Vec4 corner, along_x, along_y, along_z;
  };

  inline Load prepare(Particle& p) const {
    Stencil at(p, s.inv_dx);
    float M[9], F[9], A[9], q[3], old[9];
    memcpy(old, p.F, sizeof old);
    for (int i = 0; i < 9; i++) M[i] = s.dt * p.C[i] + (i % 4 == 0);
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        p.F[3 * i + j] = F[3 * i + j] = M[3 * i] * old[j] + M[3 * i + 1] * old[3 + j] + M[3 * i + 2] * old[6 + j];
    float J = F[0] * (F[4] * F[8] - F[5] * F[7]) - F[1] * (F[3] * F[8] - F[5] * F[6]) + F[2] * (F[3] * F[7] - F[4] * F[6]);
    float pressure = s.lambda * logarithm(J) - s.mu, scale = -4 * s.inv_dx * s.inv_dx * s.dt * s.volume;
    float active_stress = s.muscle * p.muscle;
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        float stress = s.mu * (F[3 * i] * F[3 * j] + F[3 * i + 1] * F[3 * j + 1] + F[3 * i + 2] * F[3 * j + 2]);
        stress += active_stress * F[3 * i + 2] * F[3 * j + 2] + (i == j ? pressure : 0);
        A[3 * i + j] = (scale * stress + s.mass * p.C[3 * i + j]) * s.dx;
      }
    for (int i = 0; i < 3; i++)
      q[i] = s.mass * p.v[i] - A[3 * i] * at.fx[0] - A[3 * i + 1] * at.fx[1] - A[3 * i + 2] * at.fx[2];
    return {at, Vec4{q[0], q[1], q[2], s.mass}, Vec4{A[0], A[3], A[6], 0}, Vec4{A[1], A[4], A[7], 0},
            Vec4{A[2], A[5], A[8], 0}};
  }

  inline void add(const Load& load) {
    const Stencil& at = load.at;
    Vec4* corner = grid + (size_t(at.base[0]) * s.nodes + at.base[1]) * s.nodes + at.base[2];
    Vec4 qx = load.corner;
    for (int i = 0; i < 3; i++, qx += load.along_x) {
      Vec4 qy = qx;
      for (int j = 0; j < 3; j++, qy += load.along_y) {
        Vec4* line = corner + (size_t(i) * s.nodes + j) * s.nodes;
        Vec4 qz = qy;
        float w = at.w[0][i] * at.w[1][j];
        for (int k = 0; k < 3; k++, qz += load.along_z) line[k] += splat(w * at.w[2][k]) * qz;
      }
    }
  }

  inline void wall(float* v, int axis, bool blocked) const {
    if (!blocked) return;
    float push = std::fabs(v[axis]), slide = 0;
    v[axis] = 0;
    if (s.friction == 0) return;
    for (int d = 0; d < 3; d++) slide += v[d] * v[d];
    slide = std::sqrt(slide);
    float keep = slide > s.friction * push ? 1 - s.friction * push / slide : 0;
    for (int d = 0; d < 3; d++) v[d] *= keep;
  }

  inline void update(Vec4* column, int i, int j) {
    for (int k = 0; k < s.nodes; k++) {
      float* v = reinterpret_cast<float*>(column + k);
      if (v[3] <= 0) continue;
      float inverse = 1 / v[3];
      for (int d = 0; d < 3; d++) v[d] *= inverse;
      v[2] += s.dt * s.gravity;
      int index[3] = {i, j, k};
      for (int d = 0; d < 3; d++) {
        wall(v, d, index[d] <= s.pad && v[d] < 0);
        wall(v, d, index[d] >= s.nodes - s.pad && v[d] > 0);
      }
    }
  }

  inline void gather(Particle& p) {
    Stencil at(p, s.inv_dx);
    Vec4 v = splat(0), bx = v, by = v, bz = v;
    const Vec4* corner = grid + (size_t(at.base[0]) * s.nodes + at.base[1]) * s.nodes + at.base[2];
    for (int i = 0; i < 3; i++) {
      Vec4 plane = splat(0);
      for (int j = 0; j < 3; j++) {
        const Vec4* line = corner + (size_t(i) * s.nodes + j) * s.nodes;
        Vec4 w = splat(at.w[0][i] * at.w[1][j]);
        Vec4 middle = splat(at.w[2][1]) * line[1], end = splat(at.w[2][2]) * line[2];
        Vec4 sum = w * (splat(at.w[2][0]) * line[0] + middle + end);
        plane += sum;
        by += splat(j) * sum;
        bz += w * (middle + splat(2) * end);
      }
      v += plane;
      bx += splat(i) * plane;
    }
    for (int i = 0; i < 3; i++) {
      p.C[3 * i] = 4 * s.inv_dx * (bx[i] - at.fx[0] * v[i]);
      p.C[3 * i + 1] = 4 * s.inv_dx * (by[i] - at.fx[1] * v[i]);
      p.C[3 * i + 2] = 4 * s.inv_dx * (bz[i] - at.fx[2] * v[i]);
      p.v[i] = v[i];
      p.x[i] += s.dt * v[i];
    }
  }
};

int main(int count, char** arguments) {
  if (count != 17) return fprintf(stderr, "usage: see the head of plain_reference.cpp\n"), 2;
  auto number = [&](int k) { return float(atof(arguments[k])); };
  Setting s = {atoi(arguments[2]), atoi(arguments[3]), atoi(arguments[4]), atoi(arguments[5]), number(6),  number(7),
               number(8),          number(9),          number(10),         number(11),         number(12), number(13),
               {number(14), number(15), number(16)}, 1.0f / atoi(arguments[2]), float(atof(arguments[2]))};
  std::vector<Particle> start;
  std::ifstream file(arguments[1], std::ios::binary);
  for (float row[4]; file.read(reinterpret_cast<char*>(row), sizeof row);) {
    Particle p = {};
    memcpy(p.x, row, sizeof p.x);
    memcpy(p.v, s.velocity, sizeof p.v);
    p.F[0] = p.F[4] = p.F[8] = 1;
    p.muscle = row[3];
    start.push_back(p);
  }
  Simulation simulation(s, start);
  std::cout << "{\"ready\": true, \"has_gradient\": false}" << std::endl;
  for (std::string word; std::getline(std::cin, word);) {
    if (word == "forward") {
      double wall = omp_get_wtime();
      clock_t cpu = clock();
      simulation.run();
      printf("{\"wall_s\": %.9g, \"cpu_s\": %.9g}\n", omp_get_wtime() - wall, double(clock() - cpu) / CLOCKS_PER_SEC);
    } else if (word == "result") {
      rusage usage;
      getrusage(RUSAGE_SELF, &usage);
      printf("{\"mean_height\": %.9g, \"gradient_sum\": [], \"gradient_norm\": [], \"extra\": {}, \"peak_mb\": %.6g}\n",
             simulation.mean_height(), usage.ru_maxrss / 1024.0);
    } else {
      return fprintf(stderr, "unknown word %s\n", word.c_str()), 2;
    }
    fflush(stdout);
  }
}
