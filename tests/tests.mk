# The programs of tests, included by the Makefile at the top. tests/README.md says what each folder tests.

# One archive serves all of them: the linker takes from it only the objects that a program uses. The 87 unit tests are 102 MB so,
# linked in 3 s; with every object in each of them they were 495 MB, linked in 11 s.
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
# Every fuzz target is built twice: with libFuzzer, and with a main() that runs the kept inputs.
TARGETS   = $(patsubst tests/fuzz/targets/%.c,%,$(wildcard tests/fuzz/targets/*.c))
REPLAYS   = $(TARGETS:%=$(BUILD)/replay/%)
FUZZERS   = $(TARGETS:%=$(BUILD)/fuzzer/%)
# Some programs once more, with records that are wider than they must be: only kernels/record.c may know how wide a record is.
WIDE           = $(BUILD)/wide
WIDE_PROPERTY  = $(addprefix $(WIDE)/test_,batch hogwild frozen)
WIDE_TESTS     = $(WIDE)/test_reference $(WIDE_PROPERTY)
GPU_TESTS      = $(REFERENCE) $(RUNS) $(TOGETHER) $(GPU) $(WIDE)/test_gpu $(WIDE)/test_reference

# What `scripts/check --threads` runs, what --sanitized runs, and what it runs without options.
.PHONY: thread-tests sanitized-tests tests gpu-tests fuzzers
thread-tests: $(UNIT) $(LIBRARY) $(REFERENCE)
sanitized-tests: thread-tests $(RUNS) $(REPLAYS) $(CALLS)
tests: sanitized-tests $(TOGETHER) $(WIDE_TESTS) $(BUILD)/faults.so
gpu-tests: $(GPU_TESTS)
fuzzers: $(FUZZERS)

# ---- the objects of each program ----
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

# ---- linked in one way; an object before the archive replaces the one in it ----
$(UNIT) $(WIDE_PROPERTY) $(REPLAYS) $(FUZZERS): CMOCKA = -lcmocka
$(FUZZERS): CMOCKA += -fsanitize=fuzzer
$(UNIT) $(REPLAYS) $(FUZZERS) $(WIDE_PROPERTY) $(sort $(GPU_TESTS)): $(TESTED)
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(TESTED) $(LDLIBS) $(CMOCKA)

# These are programs as other people write them: they see only the public header and the library.
$(LIBRARY): $(BUILD)/%: tests/%.c src/sptx.h $(BUILD)/libsptx.so
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(CC) $(CFLAGS) -Isrc -Itests/library $(LDFLAGS) -o $@ $< -L$(BUILD) -Wl,-rpath,$(abspath $(BUILD)) -lsptx -lcmocka -lm

# LD_PRELOAD puts this library before the program: it makes the call fail that a test names.
$(BUILD)/faults.so: tests/faults/faults.c
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(CC) -std=gnu11 -O1 -g -Wall -Wextra -Wno-unused-parameter -fPIC -shared -o $@ $<
