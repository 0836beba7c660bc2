/* pci: which devices are in this machine, by their vendor; it asks no driver. */
#ifndef SPTX_PCI_H
#define SPTX_PCI_H

#define PCI_DEVICES "/sys/bus/pci/devices"
#define PCI_NVIDIA "0x10de"

/* Returns 1 where the folder `devices` (PCI_DEVICES) lists a device of this vendor, 0 where it lists others alone; -1, and no
 * sentence, where it is absent. */
int pci_has(const char *devices, const char *vendor);

/* Returns 1 where this machine surely has no GPU of NVIDIA's: none is on the bus, and no driver shows one by another way (WSL,
 * boards whose GPU is part of the processor). */
int pci_without_nvidia(void);

#endif
