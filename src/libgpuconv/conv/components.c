/* The search for components: every channel begins with its own label, and the lower label of the two ends of a route
 * replaces the higher one until no label changes. */
#include "plan.h"

#include "libgpuconv/core/memory.h"

#include <stdlib.h>

void gc_components_free(gc_components *c) {
    free(c->component);
    free(c->members);
    *c = (gc_components){0};
}

/* Labels inputs 0 .. inputs - 1 and outputs behind them with the number of the lowest channel that they reach. */
static void label_channels(const gpuconv_ir *ir, int *label) {
    for (int i = 0; i < ir->inputs + ir->outputs; i++)
        label[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (int r = 0; r < ir->routes; r++) {
            int *a = &label[ir->route[r].input], *b = &label[ir->inputs + ir->route[r].output];
            if (*a != *b) {
                *a = *b = *a < *b ? *a : *b;
                changed = true;
            }
        }
    }
}

/* Lists the channels with label m as the next component. Returns their number. */
static int list_members(const gpuconv_ir *ir, const int *label, int m, int *members, gc_components *c) {
    gc_component *part = &c->component[c->count];
    const int nodes = ir->inputs + ir->outputs;
    int size = 0;
    *part = (gc_component){.input = members};
    for (int n = 0; n < nodes; n++)
        if (label[n] == m) {
            c->input_at[n] = n < ir->inputs ? part->inputs++ : part->outputs++;
            members[size++] = n < ir->inputs ? n : n - ir->inputs;
        }
    part->output = members + part->inputs;
    if (part->inputs == 0 || part->outputs == 0) /* a channel without a route */
        return size;
    for (int n = 0; n < nodes; n++)
        if (label[n] == m)
            c->input_owner[n] = c->count;
    c->count++;
    return size;
}

bool gc_components_find(const gpuconv_ir *ir, gc_components *c) {
    const int nodes = ir->inputs + ir->outputs;
    int *label = gc_calloc(nodes, sizeof *label), used = 0;
    *c = (gc_components){.component = gc_calloc(nodes, sizeof *c->component),
                         .members = gc_calloc(4 * (int64_t)nodes + 1, sizeof *c->members)};
    const bool made = label && c->component && c->members;
    if (made) {
        c->input_owner = c->members + nodes;
        c->output_owner = c->input_owner + ir->inputs;
        c->input_at = c->input_owner + nodes;
        c->output_at = c->input_at + ir->inputs;
        c->first_route = c->input_at + nodes;
        label_channels(ir, label);
        for (int n = 0; n < nodes; n++)
            c->input_owner[n] = -1;
        for (int m = 0; m < nodes; m++)
            used += list_members(ir, label, m, c->members + used, c);
        for (int r = 0; r < ir->routes; r++)
            c->first_route[ir->route[r].output + 1]++;
        for (int o = 0; o < ir->outputs; o++)
            c->first_route[o + 1] += c->first_route[o];
    }
    free(label);
    return made;
}

int64_t gc_components_products(const gc_components *c) {
    int64_t products = 0;
    for (int i = 0; i < c->count; i++)
        products += (int64_t)c->component[i].inputs * c->component[i].outputs;
    return products;
}
