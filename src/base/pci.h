/* pci: finds out, without a driver, whether this machine has a device of a vendor. */
#ifndef SPTX_PCI_H
#define SPTX_PCI_H

#define PCI_DEVICES "/sys/bus/pci/devices"
#define PCI_NVIDIA "0x10de"

/* Returns 1 if the folder `devices` (PCI_DEVICES) lists a device of this vendor, 0 if it does not; -1, without an error message, if
 * the folder cannot be opened. */
int pci_has(const char *devices, const char *vendor);

/* Returns 1 if this machine certainly has no NVIDIA GPU: the PCI bus lists none, and none of the device files exist by which a
 * driver offers a GPU that is not on the bus (WSL, boards whose GPU is part of the processor). Otherwise 0. */
int pci_without_nvidia(void);

#endif
