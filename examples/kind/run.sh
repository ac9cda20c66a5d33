#!/usr/bin/env bash
# Two Kind clusters, hub and spoke: a Job on the hub, whose image holds nothing but a client, lists the nodes of the spoke.
# Its credential comes from secretreader, mounted into its pod as an image volume.
#
# Needs Docker, kind, kubectl and the image (make images, or IMAGE_ARCHIVE). Both clusters are deleted at the end; KEEP=1
# leaves them. All names and versions below can be set from outside.
set -euo pipefail

KIND=${KIND:-kind}
KUBECTL=${KUBECTL:-kubectl}
DOCKER=${DOCKER:-docker}
# Of kind 0.33: take the one that the notes of your release of kind name. Image volumes need 1.35 or newer.
NODE_IMAGE=${NODE_IMAGE:-kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5}
CLIENT_IMAGE=${CLIENT_IMAGE:-registry.k8s.io/kubectl:v1.37.0}
HUB=${HUB:-execcred-hub}
SPOKE=${SPOKE:-execcred-spoke}
NAMESPACE=fleet
TIMEOUT=${TIMEOUT:-180s}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$root/common/execcred/_version.py")
IMAGE_ARCHIVE=${IMAGE_ARCHIVE:-$root/dist/images/secretreader.oci.tar}
image=registry.example/execcred/secretreader:$version

say() { printf '\n--- %s\n' "$*"; }
fail() {
    printf 'run.sh: %s\n' "$*" >&2
    exit 1
}
hub() { "$KUBECTL" --kubeconfig="$work/hub.kubeconfig" "$@"; }
spoke() { "$KUBECTL" --kubeconfig="$work/spoke.kubeconfig" "$@"; }

clean_up() {
    status=$?
    if [[ $status -ne 0 && -s $work/hub.kubeconfig ]]; then
        say "it failed; the Job and its pod:"
        hub -n "$NAMESPACE" describe job,pods -l app=nodes || true
        hub -n "$NAMESPACE" logs -l app=nodes --tail=50 || true
    fi
    rm -rf "$work"
    if [[ ${KEEP:-} ]]; then
        printf 'kept: kind delete clusters %s %s\n' "$HUB" "$SPOKE"
    elif [[ ${made:-} ]]; then
        "$KIND" delete clusters "$HUB" "$SPOKE"
    fi
    exit "$status"
}

for program in "$KIND" "$KUBECTL" "$DOCKER"; do
    command -v "$program" >/dev/null || fail "$program is not in PATH"
done
[[ -r $IMAGE_ARCHIVE ]] || fail "$IMAGE_ARCHIVE is missing: run make images"
clusters=$("$KIND" get clusters)
for name in "$HUB" "$SPOKE"; do
    if grep -Fqx -- "$name" <<<"$clusters"; then
        fail "there is a cluster $name already: delete it, or set HUB and SPOKE"
    fi
done
work=$(mktemp -d)
trap clean_up EXIT

say "two clusters"
made=1
"$KIND" create cluster --name "$HUB" --image "$NODE_IMAGE" --kubeconfig "$work/hub.kubeconfig" --wait "$TIMEOUT"
"$KIND" create cluster --name "$SPOKE" --image "$NODE_IMAGE" --kubeconfig "$work/spoke.kubeconfig" --wait "$TIMEOUT"

say "the plugin's image on the hub's node"
# With ctr, as kind load keeps only the digest of an OCI archive, and a pod asks for a name.
node=$HUB-control-plane
"$DOCKER" exec -i "$node" ctr --namespace=k8s.io images import --all-platforms - <"$IMAGE_ARCHIVE"
"$DOCKER" exec "$node" ctr --namespace=k8s.io images tag --force "secretreader-plugin:$version" "$image"
"$DOCKER" exec "$node" crictl inspecti "$image" >/dev/null || fail "the node does not know $image"

say "an identity on the spoke that may list nodes"
spoke apply -f "$here/spoke.yaml"

say "its token, and how to reach the spoke, on the hub"
hub apply -f "$here/hub.yaml"
spoke create token fleet --namespace=kube-system --duration=1h |
    hub create secret generic spoke-1 --namespace="$NAMESPACE" --from-file=token=/dev/stdin
# Inside Docker's network a node's name leads to it, and its certificate has that name.
server=https://$SPOKE-control-plane:6443
address=$("$DOCKER" inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$SPOKE-control-plane")
ca=$(spoke config view --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}')
sed -e "s|@SERVER@|$server|" -e "s|@CA@|$ca|" "$here/kubeconfig.yaml" >"$work/spoke-1.yaml"
hub create configmap spoke-1 --namespace="$NAMESPACE" --from-file=kubeconfig="$work/spoke-1.yaml"

say "a Job on the hub lists the spoke's nodes through the plugin"
sed -e "s|@IMAGE@|$image|" -e "s|@CLIENT@|$CLIENT_IMAGE|" -e "s|@HOST@|$SPOKE-control-plane|" \
    -e "s|@ADDRESS@|$address|" "$here/job.yaml" | hub apply -f -
hub wait --namespace="$NAMESPACE" --for=condition=complete --timeout="$TIMEOUT" job/nodes
found=$(hub logs --namespace="$NAMESPACE" job/nodes)
printf '%s\n' "$found"
grep -Fqx -- "node/$SPOKE-control-plane" <<<"$found" || fail "the Job did not list node/$SPOKE-control-plane"
say "done: the pod on the hub reached the spoke"
