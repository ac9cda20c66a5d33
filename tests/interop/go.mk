# Real parts, built from Go modules into .cache/go-bin: each again only when its go.mod, go.sum or source changes.
GO_BIN := .cache/go-bin
GO_SRC := tests/interop/go
GO_FLAGS := -trimpath -ldflags '-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3'
UPSTREAM := sigs.k8s.io/cluster-inventory-api/plugins
INTEROP_TOOLS := kube-apiserver kubectl consumer built upstream-secretreader upstream-kubeconfig-secretreader \
	consumer-parse kueue-config-0.15 kueue-config-0.17
BENCH_TOOLS := aws-iam-authenticator eks-verify kubelogin upstream-secretreader upstream-kubeconfig-secretreader

.PHONY: interop-tools bench-tools
interop-tools: $(addprefix $(GO_BIN)/,$(INTEROP_TOOLS)) ## build API server, kubectl, consumer and upstream plugins
# The peer for gke comes with the Google Cloud CLI's packages: gke-gcloud-auth-plugin is looked up in PATH.
bench-tools: $(addprefix $(GO_BIN)/,$(BENCH_TOOLS)) ## build the Go tools that ours are compared with

# Static, so that they also run in an empty container. $(1): module folder, $(2): package.
define go-build
@command -v go >/dev/null || { echo "Go 1.26 or newer is needed to build $(@F); install it and put it in PATH" >&2; exit 1; }
CGO_ENABLED=0 go build -C $(GO_SRC)/$(1) $(GO_FLAGS) -o $(abspath $@) $(2)
@touch $@
endef

KUBERNETES := $(addprefix $(GO_SRC)/kubernetes/,go.mod go.sum)
INVENTORY := $(addprefix $(GO_SRC)/inventory/,go.mod go.sum)
AWS := $(addprefix $(GO_SRC)/aws-iam-authenticator/,go.mod go.sum)
KUBELOGIN := $(addprefix $(GO_SRC)/kubelogin/,go.mod go.sum)

$(GO_BIN)/kube-apiserver $(GO_BIN)/kubectl: $(GO_BIN)/%: $(KUBERNETES)
	$(call go-build,kubernetes,k8s.io/kubernetes/cmd/$*)
$(GO_BIN)/upstream-secretreader $(GO_BIN)/upstream-kubeconfig-secretreader: $(GO_BIN)/upstream-%: $(INVENTORY)
	$(call go-build,inventory,$(UPSTREAM)/$*/cmd/plugin)
$(GO_BIN)/consumer $(GO_BIN)/built: $(GO_BIN)/%: $(INVENTORY) $(GO_SRC)/inventory/%/main.go
	$(call go-build,inventory,./$*)
$(GO_BIN)/aws-iam-authenticator: $(AWS)
	$(call go-build,aws-iam-authenticator,sigs.k8s.io/aws-iam-authenticator/cmd/aws-iam-authenticator)
$(GO_BIN)/eks-verify: $(AWS) $(GO_SRC)/aws-iam-authenticator/eks-verify/main.go
	$(call go-build,aws-iam-authenticator,./eks-verify)
$(GO_BIN)/kubelogin: $(KUBELOGIN)
	$(call go-build,kubelogin,github.com/Azure/kubelogin)
CONFORMANCE_PEERS := upstream-secretreader upstream-kubeconfig-secretreader aws-iam-authenticator
.PHONY: conformance-reports
conformance-reports: setup $(addprefix $(GO_BIN)/,$(CONFORMANCE_PEERS)) ## write docs/conformance/, the kit's reports on plugins of others
	$(BIN)/python tests/conformance/reports.py
# Consumers' own parsers, for the files of provider-configs. Kueue's loader brings all of Kueue: minutes, the first time.
$(GO_BIN)/consumer-parse: $(addprefix $(GO_SRC)/consumers/access/,go.mod go.sum main.go)
	$(call go-build,consumers/access,.)
$(GO_BIN)/kueue-config-%: $(GO_SRC)/consumers/kueue-%/go.mod $(GO_SRC)/consumers/kueue-%/go.sum $(GO_SRC)/consumers/kueue-%/main.go
	$(call go-build,consumers/kueue-$*,.)
