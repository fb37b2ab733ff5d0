#include "reference/layer.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace convtranspose::test {

namespace {

// Integers of which one that has left 64 bits makes everything computed from it not fit.
class Checked {
  public:
    Checked(std::int64_t value) : value_(value) {}
    bool fits() const { return fits_; }
    std::int64_t value() const { return value_; }
    friend Checked operator+(const Checked &a, const Checked &b) {
        std::int64_t sum = 0;
        const bool left = __builtin_add_overflow(a.value_, b.value_, &sum);
        return {sum, a.fits_ && b.fits_ && !left};
    }
    friend Checked operator-(const Checked &a, const Checked &b) {
        std::int64_t difference = 0;
        const bool left = __builtin_sub_overflow(a.value_, b.value_, &difference);
        return {difference, a.fits_ && b.fits_ && !left};
    }
    friend Checked operator*(const Checked &a, const Checked &b) {
        std::int64_t product = 0;
        const bool left = __builtin_mul_overflow(a.value_, b.value_, &product);
        return {product, a.fits_ && b.fits_ && !left};
    }

  private:
    Checked(std::int64_t value, bool fits) : value_(value), fits_(fits) {}
    std::int64_t value_;
    bool fits_ = true;
};

class Derivation {
  public:
    Derivation(const Problem &problem, Layer *layer) : problem_(problem), a_(problem.attributes), layer_(*layer) {}

    // Empty, or the rule that is broken.
    std::string run() {
        if (std::string broken = channels(); !broken.empty()) return broken;
        if (std::string broken = attributes(); !broken.empty()) return broken;
        layer_.y_shape = {layer_.batch};
        if (layer_.channels_first) layer_.y_shape.push_back(layer_.out_channels);
        for (std::size_t i = 0; i < count_; ++i) {
            if (std::string broken = axis(i); !broken.empty()) return broken;
        }
        if (!layer_.channels_first) layer_.y_shape.push_back(layer_.out_channels);
        return "";
    }

  private:
    std::string channels() {
        const Shape &x = problem_.x_shape, &w = problem_.w_shape;
        if (x.size() < 3) return "x needs a batch, channels and a spatial axis";
        if (w.size() != x.size()) return "w and x must have one rank";
        for (const Shape *shape : {&x, &w}) {
            for (const std::int64_t extent : *shape) {
                if (extent < 0) return "an extent is negative";
            }
        }
        count_ = x.size() - 2;
        layer_.channels_first = problem_.layout == CONVT_CHANNELS_FIRST;
        layer_.batch = x[0];
        layer_.in_channels = layer_.channels_first ? x[1] : x.back();
        layer_.group = a_.group;
        if (a_.group <= 0) return "group must be positive";
        if (layer_.in_channels % a_.group != 0) return "group must divide the input channels";
        if (w[0] != layer_.in_channels) return "w must have the channels of x";
        const Checked out_channels = Checked(w[1]) * a_.group;
        if (!out_channels.fits()) return "the output channels do not fit";
        layer_.out_channels = out_channels.value();
        if (problem_.b_shape && *problem_.b_shape != Shape{layer_.out_channels})
            return "a bias is one for each channel";
        return "";
    }

    std::string attributes() {
        kernel_.assign(problem_.w_shape.begin() + 2, problem_.w_shape.end());
        for (const std::int64_t extent : kernel_) {
            if (extent == 0) return "a kernel has elements";
        }
        if (a_.kernel_shape && *a_.kernel_shape != kernel_) return "kernel_shape must be that of w";

        strides_ = a_.strides.value_or(Shape(count_, 1));
        dilations_ = a_.dilations.value_or(Shape(count_, 1));
        output_padding_ = a_.output_padding.value_or(Shape(count_, 0));
        pads_ = a_.pads.value_or(Shape(2 * count_, 0));
        if (strides_.size() != count_ || dilations_.size() != count_ || output_padding_.size() != count_) {
            return "strides, dilations and output_padding are one for each axis";
        }
        if (pads_.size() != 2 * count_) return "pads are two for each axis";
        for (std::size_t i = 0; i < count_; ++i) {
            if (strides_[i] < 1 || dilations_[i] < 1) return "strides and dilations must be positive";
            if (output_padding_[i] < 0) return "output_padding must not be negative";
            if (output_padding_[i] >= strides_[i] && output_padding_[i] >= dilations_[i]) {
                return "output_padding must be less than the stride or the dilation";
            }
            if (pads_[i] < 0 || pads_[count_ + i] < 0) return "pads must not be negative";
        }

        const std::string &auto_pad = a_.auto_pad ? *a_.auto_pad : "NOTSET";
        same_upper_ = auto_pad == "SAME_UPPER";
        same_ = same_upper_ || auto_pad == "SAME_LOWER";
        if (!same_ && auto_pad != "VALID" && auto_pad != "NOTSET") return "there is no such auto_pad";
        if (a_.pads && auto_pad != "NOTSET") return "pads and auto_pad exclude each other";

        output_shape_ = a_.output_shape.value_or(Shape());
        if (output_shape_.size() == count_ + 2) output_shape_.erase(output_shape_.begin(), output_shape_.begin() + 2);
        if (!output_shape_.empty() && output_shape_.size() != count_) return "output_shape is one for each axis";
        return "";
    }

    std::string axis(std::size_t i) {
        Axis axis;
        axis.in = problem_.x_shape[(layer_.channels_first ? 2 : 1) + i];
        axis.kernel = kernel_[i];
        axis.stride = strides_[i];
        axis.dilation = dilations_[i];

        // From the first element of the first input to the last element of the last one.
        const Checked natural =
            Checked(axis.stride) * (axis.in - 1) + Checked(axis.dilation) * (axis.kernel - 1) + 1 + output_padding_[i];
        Checked out = natural - pads_[i] - pads_[count_ + i];
        axis.pad_begin = pads_[i];
        if (same_ || !output_shape_.empty()) {
            const Checked wanted = output_shape_.empty() ? Checked(axis.stride) * axis.in : output_shape_[i];
            const Checked excess = natural - wanted;
            if (!excess.fits()) return "a size does not fit";
            const std::int64_t cropped = std::max<std::int64_t>(excess.value(), 0);
            axis.pad_begin = cropped / 2;
            if (!same_upper_) axis.pad_begin += cropped % 2; // the odd one is at the end for SAME_UPPER alone
            // output_shape may ask for more than there is; SAME gives what there is.
            out = output_shape_.empty() ? natural - cropped : wanted;
        }
        if (!natural.fits() || !out.fits()) return "a size does not fit";
        if (out.value() < 1) return "y has no positions";
        axis.out = out.value();
        layer_.axes.push_back(axis);
        layer_.y_shape.push_back(axis.out);
        return "";
    }

    const Problem &problem_;
    const Attributes &a_;
    Layer &layer_;
    std::size_t count_ = 0; // spatial axes
    Shape kernel_, strides_, dilations_, output_padding_, pads_, output_shape_;
    bool same_ = false, same_upper_ = false;
};

} // namespace

bool derive(const Problem &problem, Layer *layer, std::string *reason) {
    Layer derived;
    *reason = Derivation(problem, &derived).run();
    if (reason->empty()) *layer = derived;
    return reason->empty();
}

Layer layer_of(const Problem &problem) {
    Layer layer;
    std::string reason;
    if (!derive(problem, &layer, &reason)) throw std::runtime_error(reason);
    return layer;
}

} // namespace convtranspose::test
