# Builds the test programs; included by the top Makefile. tests/README.md says what each folder tests.

# All test programs link this archive, from which the linker takes only the objects that a program uses. The 87 unit tests have
# 102 MB and link in 3 s; with all objects in each program they had 495 MB and linked in 11 s.
TESTED = $(BUILD)/tested.a
$(TESTED): $(LIB_OBJ) $(BUILD)/flags.objects
	@rm -f $@
	$(call quiet,AR,$@)ar rcsT $@ $(LIB_OBJ)

object_of = $(patsubst %.c,$(BUILD)/%.o,$(1))
programs  = $(patsubst tests/%.c,$(BUILD)/%,$(wildcard $(1)))
UNIT      = $(call programs,tests/unit/*/test_*.c tests/property/test_*.c)
LIBRARY   = $(call programs,tests/library/test_*.c)
REFERENCE = $(BUILD)/test_reference
RUNS      = $(BUILD)/test_runs
TOGETHER  = $(BUILD)/test_together
GPU       = $(BUILD)/test_gpu
# Every fuzz target is built twice: with libFuzzer, and with a main() that runs the stored inputs of tests/fuzz/corpus.
TARGETS   = $(patsubst tests/fuzz/targets/%.c,%,$(wildcard tests/fuzz/targets/*.c))
REPLAYS   = $(TARGETS:%=$(BUILD)/replay/%)
FUZZERS   = $(TARGETS:%=$(BUILD)/fuzzer/%)
# Some programs are built again with wider records than needed: they fail if code other than kernels/record.c assumes a width.
WIDE           = $(BUILD)/wide
WIDE_PROPERTY  = $(addprefix $(WIDE)/test_,batch hogwild frozen)
WIDE_TESTS     = $(WIDE)/test_reference $(WIDE_PROPERTY)
GPU_TESTS      = $(REFERENCE) $(RUNS) $(TOGETHER) $(GPU) $(WIDE)/test_gpu $(WIDE)/test_reference

# Programs that scripts/check runs: with --threads (thread-tests), with --sanitized (sanitized-tests), without options (tests).
.PHONY: thread-tests sanitized-tests tests gpu-tests fuzzers
thread-tests: $(UNIT) $(LIBRARY) $(REFERENCE)
sanitized-tests: thread-tests $(RUNS) $(REPLAYS) $(CALLS)
tests: sanitized-tests $(TOGETHER) $(WIDE_TESTS) $(BUILD)/faults.so
gpu-tests: $(GPU_TESTS)
fuzzers: $(FUZZERS)

# ---- objects that each program links, besides the archive ----
$(UNIT): $(BUILD)/%: $(BUILD)/tests/%.o
$(REPLAYS): $(BUILD)/replay/%: $(BUILD)/tests/fuzz/targets/%.o $(BUILD)/tests/fuzz/replay.o
$(FUZZERS): $(BUILD)/fuzzer/%: $(BUILD)/tests/fuzz/targets/%.o
$(WIDE_PROPERTY): $(WIDE)/%: $(BUILD)/tests/property/%.o
$(REFERENCE) $(WIDE)/test_reference: $(call object_of,tests/reference/test_reference.c)
$(GPU) $(WIDE)/test_gpu: $(call object_of,$(wildcard tests/gpu/*.c))
$(TOGETHER): $(call object_of,tests/ranks/test_together.c)
$(RUNS): $(call object_of,tests/runs/test_runs.c $(addprefix tests/gpu/,common.c choice.c random.c first_rows.c edge.c edge_session.c))
$(WIDE_TESTS) $(WIDE)/test_gpu: $(WIDE)/record.o
$(BUILD)/tests/gpu/%.o: INCLUDES += -I$(CUDA_HOME)/include
$(WIDE)/record.o: kernels/record.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,"$< (wide)")$(CC) $(CFLAGS) -Itests/wide $(INCLUDES) -MMD -MP -c -o $@ $<

# ---- one link rule for all; an object listed before the archive replaces the one in it ----
$(UNIT) $(WIDE_PROPERTY) $(REPLAYS) $(FUZZERS): CMOCKA = -lcmocka
$(FUZZERS): CMOCKA += -fsanitize=fuzzer
$(UNIT) $(REPLAYS) $(FUZZERS) $(WIDE_PROPERTY) $(sort $(GPU_TESTS)): $(TESTED)
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(TESTED) $(LDLIBS) $(CMOCKA)

# Compiled like programs of users: with only the public header, sptx.h, and libsptx.so.
$(LIBRARY): $(BUILD)/%: tests/%.c src/sptx.h $(BUILD)/libsptx.so
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(CC) $(CFLAGS) -Isrc -Itests/library $(LDFLAGS) -o $@ $< -L$(BUILD) -Wl,-rpath,$(abspath $(BUILD)) -lsptx -lcmocka -lm

# Preloaded into the program with LD_PRELOAD: makes the system call fail that a test names.
$(BUILD)/faults.so: tests/faults/faults.c
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(CC) -std=gnu11 -O1 -g -Wall -Wextra -Wno-unused-parameter -fPIC -shared -o $@ $<

# gcc 12 for Arm fails with an internal error where it vectorizes test_shared.c.
$(if $(filter arm,$(MACHINE)),$(eval $(BUILD)/tests/%.o: private CFLAGS += -fno-tree-vectorize))
