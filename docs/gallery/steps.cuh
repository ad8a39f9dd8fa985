// The instructions that the kernels of this gallery are made of, each in a line.
#pragma once
#include <cstdint>

#define STEP __device__ __forceinline__

STEP uint32_t shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// mbarrier objects
STEP void init(uint64_t* bar, int count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(bar)), "r"(count) : "memory"); }
STEP void arrive(uint64_t* bar) { asm volatile("{.reg .b64 t; mbarrier.arrive.shared.b64 t, [%0];}" ::"r"(shared(bar)) : "memory"); }
STEP void expect(uint64_t* bar, int bytes) { asm volatile("{.reg .b64 t; mbarrier.arrive.expect_tx.shared.b64 t, [%0], %1;}" ::"r"(shared(bar)), "r"(bytes) : "memory"); }
STEP void wait(uint64_t* bar, int parity) {
  uint32_t done = 0;
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(shared(bar)), "r"(parity) : "memory");
}
STEP uint32_t peer(const void* p, int rank) {
  uint32_t at;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared(p)), "r"(rank));
  return at;
}
STEP void arrive_cta(uint32_t bar) { asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory"); }
STEP void arrive_cluster(uint32_t bar) { asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory"); }
STEP void wait_cluster(uint64_t* bar, int parity) {
  uint32_t done = 0;
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(shared(bar)), "r"(parity) : "memory");
}
STEP int rank_in_cluster() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
STEP void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
STEP void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
STEP void cluster_sync() { cluster_arrive(); cluster_wait(); }

// proxies
STEP void fence_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
STEP void fence_proxy_all() { asm volatile("fence.proxy.async;" ::: "memory"); }
STEP void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// bulk copies
STEP void load(void* to, const void* from, int bytes, uint64_t* bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(to)), "l"(from), "r"(bytes), "r"(shared(bar)) : "memory");
}
STEP void load_multicast(void* to, const void* from, int bytes, uint64_t* bar, uint16_t mask) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(shared(to)), "l"(from), "r"(bytes), "r"(shared(bar)), "h"(mask) : "memory");
}
STEP void store(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared(from)), "r"(bytes) : "memory");
}
STEP void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int N> STEP void wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"); }
template <int N> STEP void wait_done() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"); }

// named barriers
STEP void barrier(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
STEP void barrier_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// tensor memory
STEP void tmem_alloc(uint32_t* where) { asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared(where)) : "memory"); }
STEP void tmem_free(uint32_t at) { asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(at) : "memory"); }
STEP void tmem_store(uint32_t at, uint32_t word) { asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(at), "r"(word) : "memory"); }
STEP uint32_t tmem_load(uint32_t at) {
  uint32_t word;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(at) : "memory");
  return word;
}
STEP void tmem_wait_store() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
STEP void tmem_wait_load() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
STEP void tmem_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
STEP void tmem_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

// flags
STEP void set_relaxed(int* p, int v) { asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
STEP void set_release(int* p, int v) { asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
STEP int get_relaxed(int* p) {
  int v;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
STEP int get_acquire(int* p) {
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
STEP int add_cta(int* p, int v) {
  int old;
  asm volatile("atom.acq_rel.cta.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}
STEP int add_gpu(int* p, int v) {
  int old;
  asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}

// wgmma: a product of 64 x 8 x 16, whose B stands in 256 bytes of shared memory
STEP uint64_t b_matrix(const void* p) { return uint64_t(shared(p) >> 4) | uint64_t(8) << 16 | uint64_t(8) << 32; }
// The registers are in their places before the fence: the compiler may not fill them behind it.
STEP void wgmma_fence(float (&d)[4], uint32_t (&a)[4]) {
  asm volatile("" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])::"memory");
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
STEP void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
STEP void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
STEP void wgmma(float (&d)[4], uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b) : "memory");
}
