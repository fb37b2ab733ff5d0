#include "tools/each_layer.h"

#include <exception>

#include "tools/error.h"

namespace convtranspose::tools {

void tell(const char *kind, const Job &job, const std::string &text, Progress *progress) {
    if (progress) progress->clear();
    print_message(kind, job.name + ": " + text);
}

int for_each_layer(const std::vector<Job> &jobs, const std::vector<InputShape> &shapes,
                   std::optional<convt_layout> layout, Progress *progress, const LayerAction &act) {
    int failed = 0;
    const auto fail = [&](const Job &job, const std::string &text) {
        tell("error", job, text, progress);
        failed++;
    };
    for (const Job &job : jobs) {
        if (progress) progress->step(job.name);
        try {
            Model model(job.model());
            for (const std::string &note : model.infer_shapes(shapes)) tell("note", job, note, progress);
            model.require_nodes();
            bool any_known = false;
            for (std::size_t i = 0; i < model.node_count(); i++) {
                try {
                    const Layer layer = layer_of(model, i, layout);
                    any_known = true;
                    act(job, model, layer);
                } catch (const UnknownShape &e) {
                    tell("note", job, model.label(i) + " skipped: " + e.what(), progress);
                } catch (const std::exception &e) {
                    any_known = true;
                    fail(job, message_of(e, model.label(i)));
                }
            }
            if (!any_known) throw Error("no such node has known shapes");
        } catch (const std::exception &e) {
            fail(job, message_of(e));
        }
    }
    return failed;
}

void note_floats(const Job &job, const Node &node, Progress *progress) {
    const std::string floats = node.floats();
    if (!floats.empty()) tell("note", job, node.label + " is " + floats, progress);
}

} // namespace convtranspose::tools
