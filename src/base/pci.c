#include "pci.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int is_of(const char *devices, const char *device, const char *vendor) {
    char path[512], text[32] = "";
    snprintf(path, sizeof path, "%s/%s/vendor", devices, device);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file)) text[0] = 0;
    fclose(file);
    text[strcspn(text, "\n")] = 0;
    return !strcmp(text, vendor);
}

int pci_has(const char *devices, const char *vendor) {
    struct dirent *entry;
    DIR *folder = opendir(devices);
    int found = 0;
    if (!folder) return -1;
    while (!found && (entry = readdir(folder))) found = is_of(devices, entry->d_name, vendor);
    closedir(folder);
    return found;
}

int pci_without_nvidia(void) {
    static const char *const others[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu"};
    int has = pci_has(PCI_DEVICES, PCI_NVIDIA);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) has |= !access(others[i], F_OK);
    return has == 0;
}
