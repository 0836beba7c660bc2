# The Python package, included by the Makefile at the top.

# ---- _calls.abi3.so (src/python/calls): a compiled module with faster calls that read and update rows ----
# The same file works in every CPython from 3.9 on, whichever version's headers it was compiled with. Without Python.h it is not
# built, and the package calls libsptx through ctypes alone.
PYTHON   ?= python3
PYTHON_H := $(wildcard $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)/Python.h)
CALLS     = $(if $(PYTHON_H),$(BUILD)/_calls.abi3.so)
CALLS_OBJ = $(patsubst %.c,$(BUILD)/%.o,$(wildcard src/python/calls/*.c))

#: make sdist        build/sptx-VERSION.tar.gz: the commit's tree, which pip installs as it installs ./src/python
.PHONY: sdist
sdist:
	@scripts/sdist $(BUILD) $(VERSION)

#: make python       build/sptx-*.whl: the Python package of src/python, with libsptx and the program inside
# The wheel's libsptx.so links zlib, zstd and other libraries statically, so that it runs on machines without them. It links them
# dynamically with PYTHON_STATIC= (empty), and by default if this machine lacks a static archive of any of them.
# libsptx.so also contains the commands, and sptx-w2v only calls its main(): so the package contains the kernels once. The libraries
# for MPI are separate files, one for each MPI: the program loads the one that fits the machine's MPI.
# OLDER_CUDA=FOLDER builds everything a second time, in FOLDER, with the CUDA Toolkit 11.8 unpacked there, for older drivers. That
# second build is installed in the package's top folder, and the build by this machine's Toolkit in its subfolder cudaMAJOR.
# src/python/sptx/_build.py chooses cudaMAJOR if the driver supports that CUDA version.
ARCHIVES      := $(shell for lib in $(LIBS:-l%=lib%.a); do $(CC) -print-file-name=$$lib; done 2>/dev/null)
PYTHON_STATIC ?= $(if $(filter-out /%,$(ARCHIVES)),,yes)
PYTHON_DIR = $(BUILD)/python/$(if $(PYTHON_STATIC),static,shared)
PYTHON_OBJ = $(LIB_OBJ) $(BUILD)/python/main.o
PYTHON_MPI = $(MPIS:%=$(PYTHON_DIR)/libsptx_%.so)
PYTHON_LIB = $(PYTHON_DIR)/libsptx.so $(PYTHON_DIR)/sptx-w2v $(PYTHON_MPI)
OLDER_NVCC = $(if $(OLDER_CUDA),$(wildcard $(OLDER_CUDA)/toolkit/bin/nvcc))
.PHONY: python python-library python-licenses
python: python-library
	@rm -f $(BUILD)/sptx-*.whl
	$(call quiet,PIP,src/python)$(PYTHON) -m pip --disable-pip-version-check -q wheel --no-deps \
	    $(shell $(PYTHON) -c 'import setuptools; assert int(setuptools.__version__.split(".")[0]) >= 77' 2>/dev/null && echo --no-build-isolation) -w $(BUILD) ./src/python
python-library: $(PYTHON_LIB) $(CALLS)
	@$(if $(PYTHON_H),,echo "python: there is no Python.h of $(PYTHON): the package goes by ctypes alone, which is slower")
	@$(if $(INTO),install -D -m 755 -t $(INTO)$(if $(OLDER_NVCC),/cuda$(CUDA_MAJOR)) $(PYTHON_LIB))
	@$(if $(INTO),$(if $(CALLS),install -m 755 -t $(INTO) $(CALLS)))
	@$(if $(OLDER_NVCC),$(MAKE) --no-print-directory BUILD=$(OLDER_CUDA) NVCC=$(OLDER_NVCC) OLDER_CUDA= CALLS= $@)
python-licenses:
	@scripts/licenses $(INTO) $(if $(filter yes,$(CUDA)),$(CUDA_HOME) $(OLDER_NVCC:%/bin/nvcc=%))
$(BUILD)/python/main.o: src/cli/main.c $(BUILD)/flags $(BUILD)/about
	@mkdir -p $(@D)
	$(call quiet,CC,"$< (python)")$(CC) $(CFLAGS) -fvisibility=default -Dmain=sptx_w2v_main $(INCLUDES) $(ABOUT) -MMD -MP -c -o $@ $<
$(PYTHON_DIR)/libsptx.so: STATIC = $(PYTHON_STATIC)
$(PYTHON_DIR)/libsptx.so: $(PYTHON_OBJ) $(BUILD)/flags.objects src/library/exports.map
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(call link_libsptx,libsptx.so,$(PYTHON_OBJ)) -Wl,--strip-debug
$(CALLS_OBJ): INCLUDES += -isystem $(dir $(PYTHON_H))
$(BUILD)/_calls.abi3.so: $(CALLS_OBJ)
	$(call quiet,LINK,$@)$(CC) -shared $(LDFLAGS) -o $@ $^ -Wl,--strip-debug
$(PYTHON_DIR)/sptx-w2v: src/python/program.c $(PYTHON_DIR)/libsptx.so
	$(call quiet,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,--strip-debug -o $@ $< -L$(@D) -lsptx
$(PYTHON_DIR)/libsptx_%.so: kernels/ranks/mpi.c kernels/ranks/group.h $(BUILD)/src/base/waiting.o
	@mkdir -p $(@D)
	$(call quiet,LINK,$@)$(LINK_MPI) -Wl,--strip-debug
