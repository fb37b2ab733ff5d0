#include "kernels/tuning.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/number.h"
#include "base/once.h"
#include "cpu/cpu.h"
#include "kernels/kernel_tables.h"
#include "kernels/tuning_file.h"

namespace convtranspose {

namespace {

// Reads one line that holds an object. Strings and numbers are kept as text, arrays and objects as they are written.
class LineReader {
  public:
    explicit LineReader(std::string_view line) : rest_(line) {}

    bool read(std::map<std::string, std::string> *members) {
        if (!take('{')) return false;
        if (take('}')) return at_end();
        do {
            std::string name, value;
            if (!string(&name) || !take(':') || !any_value(&value)) return false;
            (*members)[name] = value;
        } while (take(','));
        return take('}') && at_end();
    }

  private:
    void skip_space() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r')) rest_.remove_prefix(1);
    }

    bool take(char c) {
        skip_space();
        if (rest_.empty() || rest_[0] != c) return false;
        rest_.remove_prefix(1);
        return true;
    }

    bool at_end() {
        skip_space();
        return rest_.empty();
    }

    bool string(std::string *text) {
        if (!take('"')) return false;
        while (!rest_.empty() && rest_[0] != '"') {
            char c = rest_[0];
            rest_.remove_prefix(1);
            if (c == '\\') { // names of CPUs and variants need no other escapes; others are kept as written
                if (rest_.empty()) return false;
                c = rest_[0];
                rest_.remove_prefix(1);
                if (c != '"' && c != '\\' && c != '/') text->push_back('\\');
            }
            text->push_back(c);
        }
        return take('"');
    }

    bool any_value(std::string *text) {
        skip_space();
        if (!rest_.empty() && rest_[0] == '"') return string(text);
        if (!rest_.empty() && (rest_[0] == '{' || rest_[0] == '[')) return brackets(text);
        const std::size_t end = std::min(rest_.find_first_of(",} \t\r{[]\""), rest_.size());
        *text = rest_.substr(0, end);
        rest_.remove_prefix(end);
        return end > 0 && (rest_.empty() || std::string_view("{[]\"").find(rest_[0]) == std::string_view::npos);
    }

    // Takes everything up to the bracket that closes the next one.
    bool brackets(std::string *text) {
        const std::string_view whole = rest_;
        int depth = 0;
        do {
            skip_space();
            if (rest_.empty()) return false;
            if (rest_[0] == '"') {
                std::string unused;
                if (!string(&unused)) return false;
                continue;
            }
            depth += rest_[0] == '{' || rest_[0] == '[';
            depth -= rest_[0] == '}' || rest_[0] == ']';
            rest_.remove_prefix(1);
        } while (depth > 0);
        *text = whole.substr(0, whole.size() - rest_.size());
        return true;
    }

    std::string_view rest_;
};

bool read_count(const std::string &text, int *count) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *count);
    return error == std::errc() && end == text.data() + text.size() && *count >= 0;
}

using Members = std::map<std::string, std::string>;

Status read_members(std::string_view line, Members *found) {
    Members &members = *found;
    if (!LineReader(line).read(found)) return invalid("it is not a JSON object of strings and numbers");
    const bool is_profile = members.count("cost_profile") > 0;
    for (const char *const name : {"package", "kernels", "cpu", "isa", "threads", "problem", "variant"}) {
        if (members.count(name) == 0) return invalid("it has no \"", name, "\"");
        if (is_profile && std::strcmp(name, "isa") == 0) break;
    }
    if (members["package"] != CONVT_VERSION) {
        return invalid("it is of version ", members["package"],
                       " of this library, which is " CONVT_VERSION ": tune again");
    }
    if (members["kernels"] != kernels_version()) {
        return invalid("it is of kernels ", members["kernels"], ", these are ", kernels_version(), ": tune again");
    }
    return Status();
}

Status read_profile(Members &members, ProfileLine *line) {
    line->cpu = members["cpu"];
    line->isa = members["isa"];
    const std::string &value = members["cost_profile"];
    if (value[0] != '{') return find_profile(value, &line->profile);
    Members fields;
    if (!LineReader(value).read(&fields)) return invalid("its cost_profile is not a JSON object of numbers");
    TRY(find_profile("generic", &line->profile));
    for (const auto &[name, number] : fields) TRY(set_field(name, number, &line->profile));
    return Status();
}

Status read_record(Members &members, TuningRecord *record) {
    if (!read_count(members["threads"], &record->threads)) {
        return invalid("threads = ", members["threads"], " must be an integer, at least 1, or 0 for any");
    }
    if (members.count("on_threads") && !read_count(members["on_threads"], &record->on_threads)) {
        return invalid("on_threads = ", members["on_threads"], " must be an integer, at least 1, or 0 for all");
    }
    record->cpu = members["cpu"];
    record->isa = members["isa"];
    record->problem = members["problem"];
    record->variant = members["variant"];
    if (members.count("ms") && !(read_number(members["ms"], &record->ms) && record->ms >= 0)) {
        return invalid("ms = ", members["ms"], " must be a number, at least 0");
    }
    record->reason = concat("measured to be the fastest, says a tuning record: ", record->ms, " ms");
    return Status();
}

} // namespace

std::string to_json(const TuningRecord &record) {
    const auto quoted = [](std::string_view text) {
        std::string out = "\"";
        for (const char c : text) {
            if (c == '"' || c == '\\') out.push_back('\\');
            out.push_back(c);
        }
        return out + "\"";
    };
    std::string line =
        concat("{\"package\": \"" CONVT_VERSION "\", \"kernels\": ", quoted(kernels_version()),
               ", \"cpu\": ", quoted(record.cpu), ", \"isa\": ", quoted(record.isa), ", \"threads\": ", record.threads);
    if (record.on_threads) line += concat(", \"on_threads\": ", record.on_threads);
    line += concat(", \"problem\": ", quoted(record.problem), ", \"variant\": ", quoted(record.variant));
    return line + (record.ms > 0 ? concat(", \"ms\": ", record.ms, "}") : "}");
}

Status Tuning::read_line(std::string_view line) {
    Members members;
    TRY(read_members(line, &members));
    if (members.count("cost_profile") > 0) return read_profile(members, &profiles_.emplace_back());
    return read_record(members, &records_.emplace_back());
}

Status Tuning::read(std::string_view text, Tuning *tuning) {
    for (const std::string_view mark : {"\xEF\xBB\xBF", "\xFF\xFE", "\xFE\xFF"}) {
        if (text.substr(0, mark.size()) == mark)
            return invalid("line 1 of the tuning records begins with a byte order mark: write UTF-8 without one");
    }
    Tuning result;
    for (std::size_t line_number = 1; !text.empty(); line_number++) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        if (const Status status = result.read_line(line); !status) {
            return Status(status.code(), concat("line ", line_number, " of the tuning records: ", status.message()));
        }
    }
    *tuning = std::move(result);
    return Status();
}

const TuningRecord *Tuning::find(const std::string &problem, const char *cpu, const char *isa, int threads) const {
    for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
        if (record->problem == problem && (record->threads == 0 || record->threads == threads) && record->isa == isa &&
            (record->cpu == "*" || record->cpu == cpu)) {
            return &*record;
        }
    }
    return nullptr;
}

const CostProfile *Tuning::find_profile(const char *cpu, const char *isa) const {
    for (auto line = profiles_.rbegin(); line != profiles_.rend(); ++line) {
        if ((line->cpu == "*" || line->cpu == cpu) && (line->isa == "*" || line->isa == isa)) return &line->profile;
    }
    return nullptr;
}

namespace {

struct FromEnvironment {
    Tuning tuning;
    std::string why; // the reason if it could not be used

    FromEnvironment() {
        const char *const path = std::getenv("CONVTRANSPOSE_TUNING");
        if (!path || !*path) return;
        std::string text;
        std::string fault = read_tuning_file(path, &text);
        if (fault.empty()) fault = Tuning::read(text, &tuning).message();
        if (!fault.empty()) why = concat("CONVTRANSPOSE_TUNING=", path, " is not used: ", fault);
    }
};

// Returns `tuning`, or the records of the environment if that is null.
const Tuning &given_or_environment(const Tuning *tuning, std::string *why) {
    static Once<FromEnvironment> once;
    const FromEnvironment &environment = once.get([] { return FromEnvironment(); });
    if (tuning) return *tuning;
    *why = environment.why;
    return environment.tuning;
}

} // namespace

const TuningRecord *tuning_record(const Tuning *given, const Geometry &geometry, const char *cpu, const char *isa,
                                  int threads, std::string *why) {
    const Tuning *const tuning = &given_or_environment(given, why);
    std::string key;
    const auto find = [&](const Tuning &records) -> const TuningRecord * {
        if (records.records().empty()) return nullptr;
        if (key.empty()) key = tuning_key(geometry);
        return records.find(key, cpu, isa, threads);
    };
    if (const TuningRecord *const record = find(*tuning)) return record;
    for (std::size_t i = 0; kernel_table(i); i++) {
        if (const TuningRecord *const record = find(tuning_of_table(i, why))) return record;
    }
    return nullptr;
}

namespace {

// A list that only grows, and is never released, because threads may still plan while the process ends. It has no lock, as Once
// has none.
struct Remembered {
    std::string key;
    std::shared_ptr<const TuningRecord> record;
    const Remembered *next;
};
std::atomic<const Remembered *> last_remembered{nullptr};

std::shared_ptr<const TuningRecord> find_remembered(const Remembered *from, const Remembered *until,
                                                    const std::string &key) {
    for (const Remembered *r = from; r != until; r = r->next) {
        if (r->key == key) return r->record;
    }
    return nullptr;
}

} // namespace

std::shared_ptr<const TuningRecord> remembered(const std::string &key) {
    return find_remembered(last_remembered.load(std::memory_order_acquire), nullptr, key);
}

void remember(const std::string &key, std::shared_ptr<const TuningRecord> record) {
    auto made = std::make_unique<Remembered>(Remembered{key, std::move(record), nullptr});
    const Remembered *last = last_remembered.load(std::memory_order_acquire);
    do {
        // Those from made->next on were searched before another thread added some.
        if (find_remembered(last, made->next, key)) return;
        made->next = last;
    } while (!last_remembered.compare_exchange_weak(last, made.get(), std::memory_order_acq_rel));
    (void)made.release(); // the list has it
}

const CostProfile &cost_profile(const Tuning *tuning, Isa isa) {
    std::string why; // which tuning_record() tells too
    const CostProfile *const found =
        given_or_environment(tuning, &why).find_profile(cpu_name(), isa_name(isa_of_floats(isa)));
    return found ? *found : profile_of_cpu(isa_of_floats(isa));
}

std::string tuning_key(const Geometry &g) {
    TextStream key;
    key << convt_dtype_name(g.dtype) << (g.layout == CONVT_CHANNELS_LAST ? " nhwc" : " nchw") << " n" << g.batch << " g"
        << g.group << " ic" << g.in_channels << " oc" << g.out_channels;
    const auto list = [&](const char *name, const auto &value) {
        key << name;
        for (std::size_t a = 0; a < g.axes.size(); a++) key << (a ? "x" : "") << value(g.axes[a]);
    };
    // The extent of y determines the padding at the end. If y reaches beyond all products, the rest is output_padding.
    const auto pad_end = [](const AxisGeometry &a) { return a.pad_end() - a.output_padding; };
    list(" i", [](const AxisGeometry &a) { return a.in; });
    list(" k", [](const AxisGeometry &a) { return a.kernel; });
    list(" s", [](const AxisGeometry &a) { return a.stride; });
    list(" p", [](const AxisGeometry &a) { return a.pad_begin; });
    list("_", [&](const AxisGeometry &a) { return std::max<std::int64_t>(pad_end(a), 0); });
    list(" op", [&](const AxisGeometry &a) { return std::max<std::int64_t>(-pad_end(a), 0); });
    list(" d", [](const AxisGeometry &a) { return a.dilation; });
    if (g.has_bias) key << " bias";
    if (g.light.exist()) key << " w" << convt_dtype_name(g.light.dtype);
    if (g.quantized()) key << " w" << convt_dtype_name(g.w_dtype) << " y" << convt_dtype_name(g.y_dtype);
    return key.str();
}

const char *kernels_version() { return CONVTRANSPOSE_KERNELS_VERSION; }

} // namespace convtranspose
