"""Codes of `execcred doctor` and `execcred kubeconfig`: `code: cause`, `-> remedy`, `eg example`."""

TOOL_CODES = """
kubeconfig-unusable: `execcred kubeconfig` was given a file to update that is no kubeconfig, or a broken one.
-> Correct it by hand; the error names the section.
eg kubectl config view --kubeconfig=$HOME/.kube/config
kubeconfig-unwritable: `execcred kubeconfig` cannot read or write the file: permissions, a folder, a full disk.
-> Name a file that you may write with --to; its folder must be writable, too.
eg execcred kubeconfig --provider-file=providers.json --to=$HOME/.kube/fleet
kubeconfig-locked: Another process, kubectl perhaps, holds the lock of the kubeconfig.
-> Try again; if no process writes it, one died while it did: remove the .lock file beside it.
eg rm $HOME/.kube/config.lock
kubeconfig-changing: A program that takes no lock keeps writing the kubeconfig.
-> End it, or write another file with --to.
eg execcred kubeconfig --provider-file=providers.json --to=$HOME/.kube/fleet
context-missing: The kubeconfig, or its context, is not there; the error lists the contexts that are.
-> Give --kubeconfig and --context.
eg kubectl config get-contexts
context-invalid: The entries of the context cannot be used; the error names the field.
-> Correct them in the kubeconfig.
eg kubectl config view --minify --context=spoke-1
context-taken: A context, cluster or user of that name is there, and `execcred kubeconfig` has not written it.
-> Rename or remove it, or choose other names with --name-template.
eg execcred kubeconfig --provider-file=providers.json --to=$HOME/.kube/config --name-template=fleet-{name}
context-repeated: Two ClusterProfiles would have one context: the template leaves out what tells them apart.
-> Put {namespace} and {name} into --name-template, or take one --namespace.
eg --name-template={namespace}-{name}
cluster-fields-invalid: Server, proxy or CA of a cluster cannot be used; the error names the field.
-> Correct the cluster in the kubeconfig or ClusterProfile.
eg kubectl config view --minify --context=spoke-1
profile-missing: The hub has no such ClusterProfile.
-> Check name and --namespace.
eg kubectl get clusterprofiles -A
profiles-unserved: The hub serves no ClusterProfiles: another cluster, or their CRD is not installed.
-> Choose the hub by --kubeconfig and --context; the CRD comes with the cluster manager.
eg kubectl get crd clusterprofiles.multicluster.x-k8s.io
"""
