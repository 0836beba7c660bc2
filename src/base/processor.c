#include "processor.h"

#include "text.h"

#include <stdio.h>
#include <string.h>

void processor_name(char *name, size_t capacity) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];
    snprintf(name, capacity, "unknown processor");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10)) continue;
        snprintf(name, capacity, "%s", text_strip(colon + 1));
        break;
    }
    if (file) fclose(file);
}
