"""Describes the machine, and measures what it can do at best."""
import datetime
import os
import pathlib
import platform
import threading
import time

import numpy as np

# Those flags of a CPU that decide which instructions kernels can use.
TELLING_FLAGS = ("sse4_2 avx avx2 fma f16c avx_vnni avx512f avx512bw avx512vl avx512_vnni avx512_bf16 avx512_fp16 amx_tile "
                 "asimd asimddp asimdhp i8mm bf16 sve sve2").split()


def _cpuinfo(key):
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _caches():
    found = {}
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        found[f"L{level}" + {"Data": "d", "Instruction": "i"}.get(kind, "")] = size
    return found


def _governor():
    file = pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return file.read_text().strip() if file.exists() else "not told"


def describe():
    flags = _cpuinfo("flags") or _cpuinfo("Features")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": _cpuinfo("model name") or platform.processor() or platform.machine(), "architecture": platform.machine(),
            "cpus": os.cpu_count(), "telling_cpu_flags": [flag for flag in TELLING_FLAGS if flag in flags.split()],
            "cpu_flags": flags, "caches": _caches(), "frequency_governor": _governor(),
            "memory_gib": round(memory / 2**30, 1), "system": f"{platform.system()} {platform.release()}",
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes")}


def load_average():
    return os.getloadavg()[0]


def copy_bandwidth(threads, rounds=20):
    """GB/s read and written (both counted) by so many threads together, each copying an array, which are larger than the
    caches: the sum of each thread's best round, as the multiply-add peak is measured too.
    """
    largest = max((int(size[:-1]) >> 10 for size in _caches().values() if size.endswith("K")), default=0)  # MiB
    mebibytes = max(64, 4 * largest // threads)
    best = [float("inf")] * threads
    barrier = threading.Barrier(threads)

    def work(i):
        source = np.ones(mebibytes << 17)
        target = np.zeros_like(source)
        for _ in range(rounds):
            barrier.wait()
            begin = time.perf_counter()
            np.copyto(target, source)  # without the interpreter's lock
            best[i] = min(best[i], time.perf_counter() - begin)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(2 * (mebibytes << 20) / seconds for seconds in best) / 1e9
