#include "base/machine.h"
#include "tests/unit/scratch.h"

#include "tests/testing.h"

static void add_device(const char *path, const char *vendor) {
    char file[64];
    assert_int_equal(directory_make(path), 0);
    snprintf(file, sizeof file, "%s/vendor", path);
    assert_int_equal(file_replace(file, vendor, strlen(vendor)), 0);
}

static void devices_are_told_by_their_vendor(void **state) {
    assert_int_equal(pci_has("devices", PCI_NVIDIA), -1);
    assert_int_equal(directory_make("devices/0000:00:00.0"), 0); /* this device has no file that names its vendor */
    assert_int_equal(pci_has("devices", PCI_NVIDIA), 0);
    add_device("devices/0000:00:01.0", "0x8086\n");
    assert_int_equal(pci_has("devices", PCI_NVIDIA), 0);
    assert_int_equal(pci_has("devices", "0x8086"), 1);
    add_device("devices/0000:00:02.0", "0x10de\n");
    assert_int_equal(pci_has("devices", PCI_NVIDIA), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(devices_are_told_by_their_vendor, scratch_enter, scratch_leave)};
    return cmocka_run_group_tests_name("pci", tests, NULL, NULL);
}
