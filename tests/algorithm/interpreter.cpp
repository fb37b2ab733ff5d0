#include "algorithm/interpreter.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace convtranspose::test {

using namespace Halide;
using namespace Halide::Internal;

namespace {

using Lanes = std::vector<double>;

// The value as a type holds it.
double as(const Type &type, double value) {
    if (type.is_float()) return type.bits() == 32 ? static_cast<double>(static_cast<float>(value)) : value;
    if (type.is_bfloat() || type.is_handle() || std::isnan(value)) return value;
    const double whole = std::trunc(value), range = std::ldexp(1.0, type.bits());
    const double wrapped = whole - std::floor(whole / range) * range;
    return type.is_int() && wrapped >= range / 2 ? wrapped - range : wrapped;
}

std::size_t size_of(const Type &type) { return static_cast<std::size_t>(type.bytes()); }

double divide(const Type &type, double a, double b) {
    if (type.is_float()) return a / b;
    return b == 0 ? 0 : b > 0 ? std::floor(a / b) : std::ceil(a / b); // the remainder is not negative
}

// The threads of a block, which take turns: each runs to the next barrier.
class Turns {
  public:
    void run(std::size_t count, const std::function<void(std::size_t)> &body) {
        ended_.assign(count, false);
        woken_ = std::vector<std::condition_variable>(count);
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < count; i++) {
            threads.emplace_back([&, i] {
                wait_for(i);
                try {
                    body(i);
                } catch (...) {
                    failure_ = std::current_exception();
                }
                ended_[i] = true;
                pass_on(i);
            });
        }
        for (std::thread &thread : threads) thread.join();
        if (failure_) std::rethrow_exception(failure_);
    }

    void barrier(std::size_t i) {
        pass_on(i);
        wait_for(i);
    }

  private:
    void wait_for(std::size_t i) {
        std::unique_lock<std::mutex> lock(mutex_);
        woken_[i].wait(lock, [&] { return turn_ == i; });
    }
    void pass_on(std::size_t i) {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (std::size_t k = 1; k <= ended_.size(); k++) {
            turn_ = (i + k) % ended_.size();
            if (!ended_[turn_]) break;
        }
        woken_[turn_].notify_one();
    }

    std::mutex mutex_;
    std::vector<std::condition_variable> woken_; // each waits for its own turn
    std::size_t turn_ = 0;
    std::vector<bool> ended_;
    std::exception_ptr failure_;
};

// The loops over threads in some code: names and extents.
class ThreadLoops : public IRVisitor {
  public:
    std::map<std::string, Expr> extents;

  private:
    using IRVisitor::visit;
    void visit(const For *op) override {
        if (op->for_type == ForType::GPUThread) extents.emplace(op->name, op->extent);
        IRVisitor::visit(op);
    }
};

class Interpreter : public IRVisitor {
  public:
    explicit Interpreter(const Memories &buffers) {
        for (const auto &[name, memory] : buffers) {
            shapes_[name] = memory.extents;
            memory_[name] = std::make_shared<Lanes>(memory.elements);
        }
    }

    void run(const Stmt &s) { s.accept(this); }
    const Lanes &memory(const std::string &name) const { return *memory_.at(name); }

  private:
    Lanes eval(const Expr &e) {
        e.accept(this);
        return std::move(value_);
    }
    double scalar(const Expr &e) { return eval(e).at(0); }
    template<typename Op>
    void binary(const Op *op, double (*f)(const Type &type, double a, double b)) {
        Lanes a = eval(op->a);
        const Lanes b = eval(op->b);
        for (std::size_t i = 0; i < a.size(); i++) a[i] = as(op->type, f(op->a.type(), a[i], b[i]));
        value_ = std::move(a);
    }
    Lanes &find(const std::string &name, const Buffer<> &image = Buffer<>()) {
        if (!memory_.count(name)) {
            if (!image.defined()) throw std::runtime_error("no memory is called " + name);
            const Buffer<int> source = image.as<int>(); // those of tests are dense and start at 0
            memory_[name] = std::make_shared<Lanes>(source.begin(), source.end());
        }
        return *memory_.at(name);
    }
    double &element(Lanes *memory, const std::string &name, double index) {
        if (!(index >= 0 && index < static_cast<double>(memory->size())))
            throw std::runtime_error(name + " has no element " + std::to_string(index));
        return (*memory)[static_cast<std::size_t>(index)];
    }

    using IRVisitor::visit;
    void visit(const IntImm *op) override { value_ = {static_cast<double>(op->value)}; }
    void visit(const UIntImm *op) override { value_ = {static_cast<double>(op->value)}; }
    void visit(const FloatImm *op) override { value_ = {op->value}; }
    void visit(const StringImm *) override { value_ = {0}; }
    void visit(const Variable *op) override {
        const auto found = values_.find(op->name);
        if (found == values_.end()) throw std::runtime_error("no value is called " + op->name);
        value_ = found->second;
    }
    void visit(const Cast *op) override {
        value_ = eval(op->value);
        for (double &lane : value_) lane = as(op->type, lane);
    }
    void visit(const Reinterpret *op) override {
        value_ = eval(op->value);
        if (op->type.bits() != op->value.type().bits() || op->type.is_float() || op->value.type().is_float())
            throw std::runtime_error("a number is reinterpreted");
        for (double &lane : value_) lane = as(op->type, lane);
    }
    void visit(const Add *op) override {
        binary(op, [](const Type &, double a, double b) { return a + b; });
    }
    void visit(const Sub *op) override {
        binary(op, [](const Type &, double a, double b) { return a - b; });
    }
    void visit(const Mul *op) override {
        binary(op, [](const Type &, double a, double b) { return a * b; });
    }
    void visit(const Div *op) override { binary(op, divide); }
    void visit(const Mod *op) override {
        binary(op, [](const Type &type, double a, double b) { return a - divide(type, a, b) * b; });
    }
    void visit(const Min *op) override {
        binary(op, [](const Type &, double a, double b) { return std::min(a, b); });
    }
    void visit(const Max *op) override {
        binary(op, [](const Type &, double a, double b) { return std::max(a, b); });
    }
    void visit(const EQ *op) override {
        binary(op, [](const Type &, double a, double b) { return double(a == b); });
    }
    void visit(const NE *op) override {
        binary(op, [](const Type &, double a, double b) { return double(a != b); });
    }
    void visit(const LT *op) override {
        binary(op, [](const Type &, double a, double b) { return double(a < b); });
    }
    void visit(const LE *op) override {
        binary(op, [](const Type &, double a, double b) { return double(a <= b); });
    }
    void visit(const GT *op) override {
        binary(op, [](const Type &, double a, double b) { return double(a > b); });
    }
    void visit(const GE *op) override {
        binary(op, [](const Type &, double a, double b) { return double(a >= b); });
    }
    void visit(const And *op) override {
        if (op->type.is_scalar() && scalar(op->a) == 0) {
            value_ = {0};
        } else {
            binary(op, [](const Type &, double a, double b) { return double(a != 0 && b != 0); });
        }
    }
    void visit(const Or *op) override {
        binary(op, [](const Type &, double a, double b) { return double(a != 0 || b != 0); });
    }
    void visit(const Not *op) override {
        value_ = eval(op->a);
        for (double &lane : value_) lane = lane == 0;
    }
    void visit(const Select *op) override {
        const Lanes condition = eval(op->condition), otherwise = eval(op->false_value);
        value_ = eval(op->true_value);
        for (std::size_t i = 0; i < value_.size(); i++) {
            if (condition[condition.size() == 1 ? 0 : i] == 0) value_[i] = otherwise[i];
        }
    }
    void visit(const Ramp *op) override {
        const Lanes base = eval(op->base), stride = eval(op->stride);
        Lanes all;
        for (int k = 0; k < op->lanes; k++) {
            for (std::size_t i = 0; i < base.size(); i++) all.push_back(base[i] + k * stride[i]);
        }
        value_ = std::move(all);
    }
    void visit(const Broadcast *op) override {
        const Lanes one = eval(op->value);
        Lanes all;
        for (int k = 0; k < op->lanes; k++) all.insert(all.end(), one.begin(), one.end());
        value_ = std::move(all);
    }
    void visit(const Shuffle *op) override {
        Lanes from, all;
        for (const Expr &vector : op->vectors) {
            const Lanes lanes = eval(vector);
            from.insert(from.end(), lanes.begin(), lanes.end());
        }
        for (const int i : op->indices) all.push_back(from.at(static_cast<std::size_t>(i)));
        value_ = std::move(all);
    }
    void visit(const Let *op) override {
        const Lanes value = eval(op->value);
        values_[op->name] = value;
        op->body.accept(this);
    }
    void visit(const Load *op) override {
        Lanes &memory = find(op->name, op->image);
        value_ = eval(op->index);
        for (double &lane : value_) lane = element(&memory, op->name, lane);
    }
    void visit(const Call *op) override {
        if (op->is_intrinsic(Call::gpu_thread_barrier)) {
            if (!turns_) throw std::runtime_error("a barrier is outside of threads");
            turns_->barrier(thread_);
            value_ = {0};
        } else if (op->is_intrinsic(Call::likely) || op->is_intrinsic(Call::likely_if_innermost)) {
            op->args[0].accept(this);
        } else if (op->is_intrinsic(Call::shift_right)) {
            value_ = {
                as(op->type, std::floor(std::ldexp(scalar(op->args[0]), -static_cast<int>(scalar(op->args[1])))))};
        } else if (op->is_intrinsic(Call::shift_left)) {
            value_ = {as(op->type, std::ldexp(scalar(op->args[0]), static_cast<int>(scalar(op->args[1]))))};
        } else if (op->name.rfind("tile_", 0) == 0) {
            tile(op);
        } else if (op->name == Call::buffer_get_min) {
            value_ = {0};
        } else if (op->name == Call::buffer_get_extent || op->name == Call::buffer_get_stride) {
            const std::string buffer = op->args[0].as<Variable>()->name;
            const std::vector<int> &extents = shapes_.at(buffer.substr(0, buffer.rfind(".buffer")));
            const auto d = static_cast<std::size_t>(scalar(op->args[1]));
            double stride = 1;
            for (std::size_t i = 0; i < d; i++) stride *= extents[i];
            value_ = {op->name == Call::buffer_get_extent ? extents.at(d) : stride};
        } else if (op->call_type == Call::Extern || op->is_intrinsic()) {
            if (op->name.find("halide") == std::string::npos)
                throw std::runtime_error("no function is called " + op->name);
            value_ = {0}; // where buffers are, in memory and on devices
        }
    }

    // AMX's registers hold 16 rows of 64 bytes. Numbers of rows and bytes come first; addresses are in bytes.
    void tile(const Call *op) {
        const auto number = [&](std::size_t i) { return static_cast<std::size_t>(scalar(op->args.at(i))); };
        const std::size_t rows = number(0), row_bytes = number(1), pitch = 64 / size_of(op->type);
        Lanes result(16 * pitch, 0);
        const auto at = [](Lanes &lanes, std::size_t row, std::size_t columns, std::size_t column) -> double & {
            return lanes.at(row * columns + column);
        };
        if (op->name == "tile_load" || op->name == "tile_store") {
            const std::string &name = op->args[2].as<Variable>()->name;
            Lanes &memory = find(name);
            const bool stores = op->name == "tile_store";
            const std::size_t size = size_of(stores ? op->args[5].type() : op->type);
            const double bytes = static_cast<double>(size), first = scalar(op->args[3]) / bytes,
                         stride = scalar(op->args[4]) / bytes;
            Lanes value = stores ? eval(op->args[5]) : Lanes();
            for (std::size_t r = 0; r < rows; r++) {
                for (std::size_t c = 0; c < row_bytes / size; c++) {
                    double &there =
                        element(&memory, name, first + static_cast<double>(r) * stride + static_cast<double>(c));
                    if (stores) {
                        there = at(value, r, 64 / size, c);
                    } else {
                        at(result, r, pitch, c) = there;
                    }
                }
            }
        } else if (op->name == "tile_matmul") {
            const std::size_t depth = number(2);
            result = eval(op->args[3]);
            Lanes a = eval(op->args[4]), b = eval(op->args[5]);
            const std::size_t block = 4 / size_of(op->args[4].type());
            for (std::size_t r = 0; r < rows; r++) {
                for (std::size_t c = 0; c < row_bytes / 4; c++) {
                    for (std::size_t k = 0; k < depth; k++) {
                        at(result, r, 16, c) +=
                            at(a, r, 16 * block, k) * at(b, k / block, 16 * block, c * block + k % block);
                    }
                }
            }
        } else if (op->name != "tile_zero") {
            throw std::runtime_error("no function is called " + op->name);
        }
        value_ = std::move(result);
    }

    void visit(const LetStmt *op) override {
        if (!op->value.type().is_handle()) {
            const Lanes value = eval(op->value);
            values_[op->name] = value;
        }
        op->body.accept(this);
    }
    void visit(const AssertStmt *) override {}
    void visit(const For *op) override {
        const auto min = static_cast<std::int64_t>(scalar(op->min)),
                   extent = static_cast<std::int64_t>(scalar(op->extent));
        if (op->for_type == ForType::GPUThread) {
            if (turns_) {
                run_turn(op, static_cast<double>(min));
            } else {
                run_threads(op);
            }
            return;
        }
        for (std::int64_t i = min; i < min + extent; i++) {
            values_[op->name] = {static_cast<double>(i)};
            op->body.accept(this);
        }
    }
    // Runs the body as one of the threads, if that is among those of the loop.
    void run_turn(const For *op, double min) {
        const double at = of_thread_.at(op->name);
        if (at >= scalar(op->extent)) return;
        values_[op->name] = {min + at};
        op->body.accept(this);
    }
    // Runs loops over threads, this and those in it, by threads that each have values and registers of their own.
    void run_threads(const For *op) {
        ThreadLoops loops;
        op->accept(&loops);
        std::size_t count = 1;
        std::map<std::string, std::size_t> extents;
        for (const auto &[name, extent] : loops.extents) {
            extents[name] = static_cast<std::size_t>(scalar(extent));
            count *= extents[name];
        }
        Turns turns;
        std::vector<Interpreter> all(count, *this);
        for (std::size_t i = 0; i < count; i++) {
            std::size_t rest = i;
            for (const auto &[name, extent] : extents) {
                all[i].of_thread_[name] = static_cast<double>(rest % extent);
                rest /= extent;
            }
            all[i].turns_ = &turns;
            all[i].thread_ = i;
            // A register outside of the loops is one of each thread.
            for (const std::string &name : registers_)
                all[i].memory_[name] = std::make_shared<Lanes>(*memory_.at(name));
        }
        turns.run(count, [&](std::size_t i) { op->accept(&all[i]); });
    }
    void visit(const Store *op) override {
        Lanes &memory = find(op->name);
        const Lanes index = eval(op->index), value = eval(op->value), predicate = eval(op->predicate);
        for (std::size_t i = 0; i < index.size(); i++) {
            if (predicate[i] != 0) element(&memory, op->name, index[i]) = value[i];
        }
    }
    void visit(const Allocate *op) override {
        double size = 1;
        for (const Expr &extent : op->extents) size *= scalar(extent);
        size *= op->type.lanes();
        memory_[op->name] =
            std::make_shared<Lanes>(static_cast<std::size_t>(size), std::numeric_limits<double>::quiet_NaN());
        if (op->memory_type == MemoryType::Register) registers_.push_back(op->name);
        op->body.accept(this);
    }
    void visit(const Free *) override {}
    void visit(const IfThenElse *op) override {
        if (scalar(op->condition) != 0) {
            op->then_case.accept(this);
        } else if (op->else_case.defined()) {
            op->else_case.accept(this);
        }
    }
    void visit(const VectorReduce *op) override {
        if (op->op != VectorReduce::Add) throw std::runtime_error("lanes are not added");
        const Lanes all = eval(op->value);
        const auto lanes = static_cast<std::size_t>(op->type.lanes()), each = all.size() / lanes;
        Lanes sums(lanes, 0);
        for (std::size_t i = 0; i < all.size(); i++) sums[i / each] += all[i];
        value_ = std::move(sums);
    }

    Lanes value_; // of the expression that was visited last
    std::map<std::string, Lanes> values_;
    std::map<std::string, std::shared_ptr<Lanes>> memory_;
    std::map<std::string, std::vector<int>> shapes_;
    std::vector<std::string> registers_;
    std::map<std::string, double> of_thread_; // this thread's number in each loop
    Turns *turns_ = nullptr;
    std::size_t thread_ = 0;
};

class KeepLoops : public IRMutator {
  public:
    explicit KeepLoops(Stmt *to) : to_(to) {}
    using IRMutator::mutate;
    Stmt mutate(const Stmt &s) override { return *to_ = s; }

  private:
    Stmt *const to_;
};

} // namespace

Memory::Memory(std::vector<int> extents_) : extents(std::move(extents_)) {
    std::size_t count = 1;
    for (const int extent : extents) count *= static_cast<std::size_t>(extent);
    elements.assign(count, std::numeric_limits<double>::quiet_NaN());
}

void keep_loops(Pipeline pipeline, Stmt *loops) { pipeline.add_custom_lowering_pass(new KeepLoops(loops)); }

void interpret(const Stmt &loops, Memories *buffers) {
    Interpreter interpreter(*buffers);
    interpreter.run(lower_intrinsics(loops));
    for (auto &[name, memory] : *buffers) memory.elements = interpreter.memory(name);
}

} // namespace convtranspose::test
