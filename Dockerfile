# The programs in a container (docs/installing.md). For GPUs, with CUDA's libraries:
#   docker build --build-arg LOCKS="requirements.txt requirements-gpu.txt" -t tff_ssl .
FROM python:3.11-slim-bookworm
WORKDIR /tff_ssl
ARG LOCKS="requirements.txt"
COPY requirements.txt requirements-gpu.txt ./
RUN for lock in $LOCKS; do \
      pip install --no-cache-dir --no-deps --require-hashes -r $lock || exit; done
COPY . .
RUN pip install --no-cache-dir --no-deps .
ENV TF_CPP_MIN_LOG_LEVEL=3
# Runs and data are outside: -v $PWD/runs:/tff_ssl/runs
ENTRYPOINT ["python", "-m"]
CMD ["binaries.dcco", "--help"]
