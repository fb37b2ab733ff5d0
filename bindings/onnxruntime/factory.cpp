// The library's entry points, by which ONNX Runtime gets the factory of providers.
#include <exception>
#include <string>

#include "failure.h"
#include "ort_api.h"
#include "provider.h"
#include "settings.h"

#ifdef _WIN32
#define CONVT_EXPORT extern "C" __declspec(dllexport)
#else
#define CONVT_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace convtranspose::provider {

namespace {

class Factory : public EpFactory {
  public:
    // In ONNX Runtime 1.23 all graphs of a model begin to count the names of what a provider takes at 0, and
    // equal names are an error.
    Factory(const void *table, const std::string &ort_version)
        : api_(table), in_one_graph_(ort_version.rfind("1.23.", 0) == 0) {
        get_name = [](const EpFactory *) { return kProviderName; };
        get_vendor = [](const EpFactory *) { return "ConvTranspose"; };
        get_vendor_id = [](const EpFactory *) { return std::uint32_t{0}; }; // there is no PCI vendor
        get_version = [](const EpFactory *) { return convt_version(); };
        get_supported_devices = devices;
        create_ep = create;
        release_ep = [](EpFactory *, Ep *ep) { delete static_cast<Provider *>(ep); };
        // Tensors are in ordinary memory, by ONNX Runtime's own allocator.
        create_allocator = [](EpFactory *, const void *, const OrtKeyValuePairs *, void **allocator) {
            *allocator = nullptr;
            return static_cast<OrtStatus *>(nullptr);
        };
        release_allocator = [](EpFactory *, void *) {};
        create_data_transfer = [](EpFactory *, void **transfer) {
            *transfer = nullptr;
            return static_cast<OrtStatus *>(nullptr);
        };
        is_stream_aware = [](const EpFactory *) { return false; };
    }

  private:
    // The first CPU is what providers are made for.
    static OrtStatus *devices(EpFactory *factory, const OrtHardwareDevice *const *hardware, std::size_t count,
                              OrtEpDevice **ep_devices, std::size_t capacity, std::size_t *made) {
        const Api &api = static_cast<Factory *>(factory)->api_;
        return guarded(api, [&] {
            *made = 0;
            for (std::size_t i = 0; i < count && *made == 0 && capacity > 0; i++) {
                if (api.HardwareDevice_Type(hardware[i]) != kCpu) continue;
                check(api, api.CreateEpDevice(factory, hardware[i], nullptr, nullptr, ep_devices));
                *made = 1;
            }
        });
    }

    static OrtStatus *create(EpFactory *factory, const OrtHardwareDevice *const *, const OrtKeyValuePairs *const *,
                             std::size_t, const OrtSessionOptions *options, const OrtLogger *logger, Ep **ep) {
        const auto &self = *static_cast<Factory *>(factory);
        *ep = nullptr;
        return guarded(self.api_, [&] {
            *ep = new Provider(self.api_, logger, settings_of(self.api_, options), self.in_one_graph_);
        });
    }

    Api api_;
    bool in_one_graph_;
};

} // namespace

} // namespace convtranspose::provider

using namespace convtranspose::provider;

// Called once when the library is registered.
CONVT_EXPORT OrtStatus *CreateEpFactories(const char *, const ApiBase *base, const OrtLogger *, EpFactory **factories,
                                          std::size_t capacity, std::size_t *count) {
    *count = 0;
    const void *const table = base->get_api(kApiVersion);
    // The function that makes a status is the first of every version.
    using CreateStatus = OrtStatus *(*)(int, const char *);
    const auto create_status =
        reinterpret_cast<CreateStatus>(static_cast<const Unused *>(table ? table : base->get_api(1))[0]);
    try {
        if (!table) {
            const std::string message =
                std::string(kProviderName) + " needs ONNX Runtime 1.23.1 or later; this is " + base->get_version();
            return create_status(kNotImplemented, message.c_str());
        }
        if (capacity == 0) return create_status(kInvalidArgument, "there is no room for a factory");
        factories[0] = new Factory(table, base->get_version());
        *count = 1;
        return nullptr;
    } catch (const std::exception &error) {
        return create_status(kFail, error.what());
    }
}

// Called when it is unregistered, once no session is left.
CONVT_EXPORT OrtStatus *ReleaseEpFactory(EpFactory *factory) {
    delete static_cast<Factory *>(factory);
    return nullptr;
}
