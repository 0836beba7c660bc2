# sptx-w2v. `make` builds build/sptx-w2v; `make help` lists the other targets.

# ARCH=aarch64 builds for 64-bit Arm, for the CPU alone and without MPI, into build/aarch64; on another machine by a cross compiler
# (scripts/setup.sh --arm).
ARCH   ?=
ifeq ($(ARCH),aarch64)
BUILD  ?= build/aarch64
CUDA   := no
MPI    := no
ifneq ($(shell uname -m),aarch64)
CC     := aarch64-linux-gnu-gcc
endif
endif
BUILD  ?= build
PREFIX ?= /usr/local
CC     ?= cc
OPT    ?= -O3
# DEBUG=yes compiles the conditions of INVARIANT() (src/base/report.h).
DEBUG  ?= no
# gnu11 is C11 with POSIX names. There is no -march: kernels/cpu/rows.c is compiled once for each level of processors, one of which
# is picked at run time.
# The same objects make the program and the library, which exports what src/sptx.h declares and nothing else.
CFLAGS   = -std=gnu11 $(OPT) -g -fno-math-errno -fno-trapping-math -ffp-contract=off -Wall -Wextra -Wshadow -Wno-unused-parameter -Wno-psabi -pthread \
           -fPIC -fvisibility=hidden -DSPTX_DEBUG=$(if $(filter yes,$(DEBUG)),1,0) $(EXTRA_CFLAGS)
LDFLAGS += -pthread $(EXTRA_CFLAGS)
# STATIC=yes puts the libraries into the program (all but the C library and CUDA's), for machines that lack them.
LIBS     = -linih -lz -lzstd -llzma -lxxhash
LDLIBS   = $(if $(STATIC),-Wl$(comma)-Bstatic $(LIBS) -Wl$(comma)-Bdynamic,$(LIBS)) -ldl -lm
comma    = ,

# ---- CUDA, where nvcc is (CUDA=no builds without) ----
NVCC      ?= $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
CUDA      ?= $(if $(NVCC),yes,no)
# NVCC chooses a CUDA Toolkit, 11.8 or later. CUDA_ARCH says for which GPUs: native (the one that is here; the default where there
# is one), all (every one from Turing on: machine code for 7.5, 8.0, 9.0, 10.0 and 12.0, as far as the Toolkit knows them, which
# later cards of the same generation run, too, and PTX, which the driver compiles for the others), oldest (only the oldest of these
# GPUs: 327 s of processor time instead of 878 s, for machines that compile kernels but do not run them), or nvcc's own options.
# EXTRA_NVFLAGS=-lineinfo is for profilers.
CUDA_ARCH ?= $(if $(wildcard /dev/nvidia[0-9]*),native,all)
GENCODE_native = -arch=native
# What the Toolkit says of itself: its GPUs (compute_*), and its option for small programs, if it is so new.
TOOLKIT   := $(if $(filter yes,$(CUDA)),$(shell $(NVCC) --list-gpu-arch; $(NVCC) --help | grep -o -m1 -e --compress-mode))
SMS        = $(patsubst compute_%,%,$(filter $(addprefix compute_,75 80 90 100 120),$(TOOLKIT)))
OLDEST     =
gencode    = -gencode=arch=compute_$(1)$(comma)code=$(2)
ptx_for    = $(or $(if $(filter-out 75,$(1)),$(OLDEST)),$(if $(filter 100 120,$(1)),90),$(1))
GENCODE_all = $(foreach sm,$(SMS),$(call gencode,$(call ptx_for,$(sm)),sm_$(sm))) \
              $(call gencode,$(call ptx_for,90),compute_$(call ptx_for,90))
GENCODE_oldest = $(call gencode,$(firstword $(SMS)),sm_$(firstword $(SMS)))
COMPRESS   = $(if $(filter --compress-mode,$(TOOLKIT)),--compress-mode=size,-Xfatbin -compress-all)
NVFLAGS    = -O3 -std=c++17 -DSPTX_DEBUG=$(if $(filter yes,$(DEBUG)),1,0) $(COMPRESS) $(or $(GENCODE_$(CUDA_ARCH)),$(CUDA_ARCH)) -Xcompiler -Wall,-pthread,-fPIC $(EXTRA_NVFLAGS)
CUDA_MAJOR = $(shell $(NVCC) --version | sed -n 's/.*release \([0-9]*\).*/\1/p')
CUDA_HOME  = $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
CUDA_LIB   = $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/targets/x86_64-linux/lib))

# ---- MPI: a library for each that pkg-config knows (MPI=no: none), loaded under mpirun (kernels/ranks/group.h) ----
known       = $(firstword $(foreach pc,$(1),$(shell pkg-config --exists $(pc) 2>/dev/null && echo $(pc))))
PC_openmpi := $(call known,ompi-c ompi)
PC_mpich   := $(call known,mpich)
PC_mpi     := $(if $(PC_openmpi)$(PC_mpich),,$(call known,mpi-c mpi))
MPI        ?= yes
MPIS       := $(if $(filter yes,$(MPI)),$(foreach mpi,openmpi mpich mpi,$(if $(PC_$(mpi)),$(mpi))))
MPI_LIB     = $(MPIS:%=$(BUILD)/libsptx_%.so)

# Files are included by their path under src/ or under the top.
INCLUDES = -I. -Isrc
SRC      = $(filter-out src/python/%,$(wildcard src/*/*.c))
# MACHINE is the one that the compiler compiles for. It need not be this machine (CC=aarch64-linux-gnu-gcc). Only the levels v3, v4
# and neon of rows.c fuse products with sums; a compiler for Arm would do so everywhere.
COMPILES := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
MACHINE   = $(or $(if $(filter x86_64,$(COMPILES)),x86),$(if $(filter aarch64,$(COMPILES)),arm),plain)
KERNEL_C = $(wildcard kernels/*.c) kernels/cpu/level_$(MACHINE).c \
           $(filter-out %/rows.c %/level_x86.c %/level_arm.c %/level_plain.c,$(wildcard kernels/cpu/*.c)) kernels/cuda/estimate.c \
           $(filter-out %/mpi.c,$(wildcard kernels/ranks/*.c))
LEVELS     = base $(LEVELS_$(MACHINE))
LEVELS_x86 = v3 v4
LEVELS_arm = neon
LEVEL_base = -DCPU_LANES=8
LEVEL_v3   = -DCPU_LANES=8 -march=x86-64-v3 -ffp-contract=fast
LEVEL_v4   = -DCPU_LANES=16 -march=x86-64-v4 -ffp-contract=fast -mprefer-vector-width=512
LEVEL_neon = -DCPU_LANES=8 -ffp-contract=fast

OBJ  = $(SRC:%.c=$(BUILD)/%.o) $(KERNEL_C:%.c=$(BUILD)/%.o) $(LEVELS:%=$(BUILD)/kernels/cpu/rows_%.o)
ifeq ($(CUDA),yes)
CU   = $(wildcard kernels/cuda/*.cu)
OBJ += $(CU:%.cu=$(BUILD)/%.cu.o) $(BUILD)/kernels/cuda/ops.o
LDLIBS += -L$(CUDA_LIB) -lcudart_static -lrt -lstdc++
else
OBJ += $(BUILD)/kernels/cuda/absent.o
endif
LIB_OBJ = $(filter-out $(BUILD)/src/cli/main.o,$(OBJ))

# ---- what --version says; its file is compiled again when that changes ----
COMMIT   = $(or $(if $(wildcard .git),$(shell git describe --tags --always --dirty 2>/dev/null)),unknown)
GPUS     = $(or $(patsubst code=%,%,$(filter code=%,$(subst $(comma), ,$(filter -gencode=%,$(NVFLAGS))))),$(CUDA_ARCH))
ABOUT    = -DBUILD_COMMIT='"$(COMMIT)"' -DBUILD_CUDA='"$(if $(filter yes,$(CUDA)),$(strip $(GPUS)),no)"' \
           -DBUILD_MPI='"$(or $(strip $(MPIS)),no)"'

# ---- libsptx: everything but the commands ----
VERSION = $(shell sed -n 's/^.define SPTX_VERSION "\(.*\)"/\1/p' src/sptx.h)
SONAME  = libsptx.so.$(firstword $(subst ., ,$(VERSION)))
LIBSPTX = $(BUILD)/libsptx.so $(BUILD)/libsptx.a $(BUILD)/sptx.pc
LIBSPTX_OBJ = $(filter-out $(BUILD)/src/cli/%,$(OBJ))

# Targets that set up and build run one job a core, unless make was given -j.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# Each file prints one short line; `make V=1` shows the commands.
quiet = $(if $(V),,@printf '  %-4s %s\n' $(1) $(2);)


.PHONY: all help setup demo docs check check-long check-gpu check-kernels sanitize thread-sanitize fuzz layers libsptx install clean
all: $(BUILD)/sptx-w2v $(MPI_LIB)

help:
	@sed -n 's/^#: //p' $(filter-out %.d,$(MAKEFILE_LIST))

#: make              build build/sptx-w2v (with the CUDA backend where nvcc is; CUDA=no: without)
$(BUILD)/sptx-w2v: $(OBJ) $(BUILD)/flags.objects
	$(call quiet,LINK,$@)$(CC) $(LDFLAGS) -o $@ $(OBJ) $(LDLIBS)

# These files record the compilers' flags and the list of objects: when one changes, its targets are rebuilt. The flags of CUDA
# kernels have a separate file, so that switching CUDA on or off does not recompile C. A changed list of objects only links again.
$(BUILD)/flags: FLAGS = $(CC) $(CFLAGS)
$(BUILD)/flags.cuda: FLAGS = $(NVCC) $(NVFLAGS)
$(BUILD)/flags.objects: FLAGS = $(OBJ)
$(BUILD)/flags $(BUILD)/flags.cuda $(BUILD)/flags.objects: always
	@mkdir -p $(@D)
	@printf '%s\n' '$(FLAGS)' | cmp -s - $@ || printf '%s\n' '$(FLAGS)' >$@
.PHONY: always

$(BUILD)/about: always
	@mkdir -p $(@D)
	@echo "$(ABOUT)" | cmp -s - $@ || echo "$(ABOUT)" >$@
$(BUILD)/src/cli/main.o: INCLUDES += $(ABOUT)
$(BUILD)/src/cli/main.o: $(BUILD)/about

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(CC) $(CFLAGS) $(INCLUDES) -MMD -MP -c -o $@ $<

# The assembler reads the files of the page that report writes.
$(BUILD)/src/vectors/page.o: $(wildcard src/vectors/page/*)

# One source and one copy of the clock a library; everything else of it is that MPI's.
$(BUILD)/libsptx_%.so: kernels/ranks/mpi.c kernels/ranks/group.h $(BUILD)/src/base/waiting.o
	$(call quiet,LINK,$@)$(LINK_MPI) -Wl,--as-needed $$(pkg-config --libs $(PC_$*))
LINK_MPI = $(CC) $(CFLAGS) $(INCLUDES) $$(pkg-config --cflags $(PC_$*)) -shared $(LDFLAGS) -o $@ kernels/ranks/mpi.c \
           $(BUILD)/src/base/waiting.o

# rows.c becomes one object a processor level, whose only symbol has the level in its name.
$(BUILD)/kernels/cpu/rows_%.o: kernels/cpu/rows.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,"$< ($*)")$(CC) $(CFLAGS) $(INCLUDES) $(LEVEL_$*) -DCPU_LEVEL=$* -MMD -MP -c -o $@ $<

# The PTX of one generation becomes machine code for those that follow. No kernel uses an instruction newer than 9.0's, whose PTX
# serves 10.0 and 12.0; the kernels of a step and of rows by id use none newer than 7.5's, except that step_dots_ranks copies into
# shared memory as 8.0 does (kernels/cuda/older_cards.cuh).
$(BUILD)/kernels/cuda/step%.o $(BUILD)/kernels/cuda/by_id%.o $(BUILD)/kernels/cuda/snap%.o: private OLDEST = $(firstword $(SMS))
$(BUILD)/kernels/cuda/step_dots_ranks.cu.o: private OLDEST = 80

$(BUILD)/%.cu.o: %.cu $(BUILD)/flags.cuda
	@mkdir -p $(@D)
	$(call quiet,NVCC,$<)$(NVCC) $(NVFLAGS) $(INCLUDES) -MMD -MP -c -o $@ $<

#: make setup        install what is missing (Debian, Ubuntu) and say what was found
setup:
	@scripts/setup.sh

#: make demo         set up, build, train on the C headers of this machine, show neighbours, a page
demo:
	@scripts/setup.sh
	@$(MAKE) --no-print-directory $(JOBS) all
	@scripts/demo.sh

#: make docs         build/docs: the manual as pages for a browser; every block of code in src/docs is run
docs: all libsptx
	@scripts/setup.sh --docs
	@BUILD=$(BUILD) $(BUILD)/venv/bin/python src/docs/make_pages.py $(BUILD)/docs-source
	@$(BUILD)/venv-docs/bin/sphinx-build -q -n -W --keep-going -E -d $(BUILD)/docs-source/run/doctrees $(BUILD)/docs-source $(BUILD)/docs
	@echo "docs: open $(BUILD)/docs/index.html"

#: make check        set up, build, pass the tests (minutes)
check:
	@scripts/setup.sh --tests
	@$(MAKE) --no-print-directory $(JOBS) all tests libsptx python PYTHON=$(BUILD)/venv/bin/python
	@scripts/check

#: make check-long   the tests that take longer; with nvcc, also compiles every kernel for every GPU
EVERY_CARD = $(if $(filter all,$(CUDA_ARCH)),$(BUILD),$(BUILD)/every-card)
check-long: all tests libsptx
	@$(if $(filter yes,$(CUDA)),$(MAKE) --no-print-directory CUDA_ARCH=all BUILD=$(EVERY_CARD) check-kernels)
	@$(MAKE) --no-print-directory python PYTHON=$(BUILD)/venv/bin/python
	@scripts/check --long
	@$(MAKE) --no-print-directory check-arm

#: make check-arm    build for 64-bit Arm; pass the C tests and the record of bytes, and the wheel, under qemu on another machine. check-arm-few: fewer
check-arm check-arm-few:
	@scripts/setup.sh --arm
	@$(MAKE) --no-print-directory $(JOBS) ARCH=aarch64 all $(if $(filter %few,$@),build/aarch64/test_reference,tests)
	@$(if $(wildcard build/venv/bin/python),_PYTHON_HOST_PLATFORM=linux-aarch64 $(MAKE) --no-print-directory $(JOBS) ARCH=aarch64 python \
	    PYTHON=build/venv/bin/python && scripts/try_wheel_arm.sh build/aarch64)
	@scripts/check --arm$(if $(filter %few,$@),-few) build/aarch64

#: make check-gpu    everything that needs a GPU
check-gpu: all gpu-tests libsptx $(CALLS)
	@scripts/check_gpu

#: make sanitize     the C tests under address and undefined-behaviour sanitizers; thread-sanitize: batch mode
sanitize:
	@$(MAKE) --no-print-directory $(JOBS) BUILD=$(BUILD)/asan CUDA=no DEBUG=yes OPT=-O1 EXTRA_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1" all sanitized-tests
	@scripts/check --sanitized $(BUILD)/asan
thread-sanitize:
	@$(MAKE) --no-print-directory $(JOBS) BUILD=$(BUILD)/tsan CUDA=no DEBUG=yes OPT=-O1 EXTRA_CFLAGS="-fsanitize=thread -g1" all thread-tests
	@scripts/check --threads $(BUILD)/tsan

#: make check-kernels  compile every kernel, whatever is installed to run it
check-kernels: $(patsubst %.cu,$(BUILD)/%.cu.o,$(wildcard kernels/cuda/*.cu))

#: make fuzz SECONDS=600  look for inputs that break a reader, with libFuzzer (clang): every target its share of the time
SECONDS ?= 120
fuzz:
	@scripts/setup.sh --fuzz
	@$(MAKE) --no-print-directory $(JOBS) BUILD=$(BUILD)/fuzz CC=clang CUDA=no DEBUG=yes OPT=-O1 EXTRA_CFLAGS="-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined -fno-omit-frame-pointer" fuzzers
	@scripts/fuzz $(BUILD)/fuzz $(SECONDS)

#: make layers       no folder includes what is above it; comments name what exists
layers:
	@scripts/check_layers
	@scripts/check_names

#: make libsptx      build/libsptx.so, libsptx.a, sptx.pc: rows of huge tables for other programs (src/sptx.h)
libsptx: $(LIBSPTX)
$(BUILD)/libsptx.so: $(BUILD)/$(SONAME)
	@ln -sf $(SONAME) $@
link_libsptx = $(CC) -shared -Wl,-soname,$(1) -Wl,--version-script=src/library/exports.map $(LDFLAGS) -o $@ $(2) $(LDLIBS)
$(BUILD)/$(SONAME): $(LIBSPTX_OBJ) $(BUILD)/flags.objects src/library/exports.map
	$(call quiet,LINK,$@)$(call link_libsptx,$(SONAME),$(LIBSPTX_OBJ))
$(BUILD)/libsptx.a: $(LIBSPTX_OBJ) $(BUILD)/flags.objects
	@rm -f $@
	$(call quiet,AR,$@)ar rcs $@ $(LIBSPTX_OBJ)
$(BUILD)/sptx.pc: scripts/sptx.pc.in src/sptx.h Makefile
	@sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(strip $(LDLIBS))|' $< >$@

include src/python/python.mk
include $(wildcard tests/tests.mk) # optional: scripts/Containerfile does not copy tests/

#: make wheel [ARCH=aarch64]   build/wheel/sptx-*-manylinux_*.whl: the same for every machine, and for every GPU from a T4 on where nvcc is
.PHONY: wheel
wheel:
	@$(if $(ARCH),CUDA=no scripts/setup.sh --arm)
	@$(if $(ARCH),CUDA=no) BUILD=build scripts/setup.sh --wheel
	@$(if $(ARCH),_PYTHON_HOST_PLATFORM=linux-$(ARCH)) $(MAKE) --no-print-directory $(JOBS) python PYTHON=build/venv-wheel/bin/python \
	    $(if $(filter yes,$(CUDA)),CUDA_ARCH=all OLDER_CUDA=$(BUILD)/cuda11)
	@scripts/wheel $(BUILD)

#: make install PREFIX=/usr/local   the program, the library, its header and sptx.pc, a manual page, completion for bash and zsh
#: make uninstall PREFIX=/usr/local  takes all of that away
TO        = $(DESTDIR)$(PREFIX)
BASH_INTO = share/bash-completion/completions
ZSH_INTO  = share/zsh/site-functions
INSTALLED = bin/sptx-w2v include/sptx.h lib/$(SONAME) lib/libsptx.so lib/libsptx.a lib/pkgconfig/sptx.pc \
            share/man/man1/sptx-w2v.1 $(BASH_INTO)/sptx-w2v $(ZSH_INTO)/_sptx-w2v
# The libraries for MPIs have a folder of their own, where the program looks for them. ldconfig lets programs find libsptx at once;
# it is left out where nothing of this system changes (DESTDIR) or where it may not write.
LDCONFIG = [ -n "$(DESTDIR)" ] || PATH=$$PATH:/sbin:/usr/sbin ldconfig 2>/dev/null || true
.PHONY: uninstall
install: all $(LIBSPTX)
	install -d $(sort $(dir $(addprefix $(TO)/,$(INSTALLED)))) $(TO)/lib/sptx
	install -m 755 $(BUILD)/sptx-w2v $(TO)/bin/sptx-w2v
	install -m 644 src/sptx.h $(TO)/include/sptx.h
	install -m 755 $(BUILD)/$(SONAME) $(TO)/lib/$(SONAME)
	ln -sf $(SONAME) $(TO)/lib/libsptx.so
	install -m 644 $(BUILD)/libsptx.a $(TO)/lib/libsptx.a
	sed 's|^prefix=.*|prefix=$(PREFIX)|' $(BUILD)/sptx.pc >$(TO)/lib/pkgconfig/sptx.pc
	$(if $(MPIS),install -m 755 $(MPI_LIB) $(TO)/lib/sptx)
	$(BUILD)/sptx-w2v help man >$(TO)/share/man/man1/sptx-w2v.1
	$(BUILD)/sptx-w2v help bash >$(TO)/$(BASH_INTO)/sptx-w2v
	$(BUILD)/sptx-w2v help zsh >$(TO)/$(ZSH_INTO)/_sptx-w2v
	@$(LDCONFIG)
uninstall:
	rm -f $(addprefix $(TO)/,$(INSTALLED)) $(TO)/lib/sptx/libsptx_*.so
	[ ! -d $(TO)/lib/sptx ] || rmdir $(TO)/lib/sptx
	@$(LDCONFIG)

#: make clean
clean:
	rm -rf $(BUILD)

# The compiler's lists of headers. No rule makes them, and make must not try its own. Below root lies a whole system, in which the
# wheel is tried (scripts/try_wheel.sh).
%.d: ;
-include $(shell find $(BUILD) -path '$(BUILD)/root*' -prune -o -type f -name '*.d' -print 2>/dev/null)
