// This file knows the kinds of devices that are linked, and the devices that are open.
#include <mutex>
#include <vector>

#include "base/parallel.h"
#include "gpu/open_device.h"

namespace convtranspose {

namespace {

struct Opened {
    const DeviceTable *table;
    int index;
    void *context;
    std::weak_ptr<OpenDevice> device;
    std::shared_ptr<OpenDevice> kept;
};

// It is never destroyed, as drivers may be gone before the destructors of a program's own objects run.
struct Registry {
    Mutex mutex;
    std::vector<Opened> opened;
};

} // namespace

Status OpenDevice::open(const DeviceTable &table, int index, void *context, std::shared_ptr<OpenDevice> *out) {
    static auto *const the_one = new Registry;
    Registry &all = *the_one;
    const std::lock_guard<Mutex> lock(all.mutex);
    for (auto i = all.opened.begin(); i != all.opened.end();) {
        std::shared_ptr<OpenDevice> device = i->device.lock();
        if (device && i->table == &table && i->context == context && (context || i->index == index)) {
            *out = std::move(device);
            return Status();
        }
        i = device ? i + 1 : all.opened.erase(i);
    }
    std::shared_ptr<OpenDevice> device(new OpenDevice(table));
    DeviceError error;
    if (!table.backend->open(index, context, &device->device_, &device->facts_, &error)) return to_status(false, error);
    all.opened.push_back({&table, index, context, device, context ? nullptr : device});
    *out = std::move(device);
    return Status();
}

const DeviceTable *find_device_table(const std::string &kind) {
    for (const DeviceTable *table : {&convt_cuda_kernels, &convt_opencl_kernels}) {
        if (table->backend && kind == table->kind) return table;
    }
    return nullptr;
}

} // namespace convtranspose
