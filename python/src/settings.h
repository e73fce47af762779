// Settings of a convolution from Python's keywords.
#ifndef GPUCONV_PYTHON_SETTINGS_H
#define GPUCONV_PYTHON_SETTINGS_H

#include "common.h"

#include "libgpuconv/ir/settings.h"

#include <algorithm>
#include <cstring>

using dictionary = nb::typed<nb::dict, nb::str, nb::any>;
using text = std::optional<std::string>;
using named_texts = std::vector<std::pair<std::string, std::string>>;

inline const char *c_str(const text &t) {
    return t ? t->c_str() : nullptr;
}

// Returns the keyword of a setting: the option of the command with _ for -.
inline std::string keyword_of(const gc_setting &s) {
    std::string name = s.option ? s.option : s.column;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

// Owns the list of paths of its settings.
struct settings_owner {
    gc_settings made = gc_settings_default();
    settings_owner() = default;
    settings_owner(const settings_owner &) = delete;
    ~settings_owner() {
        gc_settings_free(&made);
    }
};

// Settings and the texts that they were made of, to which they point.
struct settings : settings_owner {
    const named_texts texts;
    explicit settings(named_texts given) : texts(std::move(given)) {
        for (const auto &[name, value] : texts)
            set(name, value);
    }

  private:
    void set(const std::string &name, const std::string &value) {
        int id = 0;
        char range[GC_SETTING_TEXT_ROOM];
        while (id < GC_SETTINGS && keyword_of(gc_settings_table[id]) != name)
            id++;
        if (id == GC_SETTINGS)
            raise(GPUCONV_ERROR_ARGUMENT, ("no setting " + name).c_str());
        const gpuconv_status status = gc_setting_set(&made, (gc_setting_id)id, value.c_str());
        gc_setting_range(&gc_settings_table[id], range);
        if (status)
            raise(status, (name + ": must be " + range + ", not '" + value + "'").c_str());
    }
};

#endif
