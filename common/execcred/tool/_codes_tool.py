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
cluster-unreachable: The cluster does not answer: DNS, network, proxy, a private endpoint, or nothing in time.
-> Check the server URL, HTTPS_PROXY and NO_PROXY, and from which network the endpoint is open.
eg kubectl --context=spoke-1 get --raw /readyz
cluster-tls: The cluster's certificate is not trusted, or what answers speaks no TLS.
-> Correct certificate-authority-data or tls-server-name of the cluster.
eg openssl s_client -connect spoke-1.example:6443 -showcerts
cluster-unauthorized: The cluster does not accept the credential; the error tells whose it is.
-> As the hint says: map the identity in the cluster, correct the clock, or renew the credential.
eg aws eks create-access-entry --cluster-name spoke-1 --principal-arn arn:aws:iam::111122223333:role/fleet
cluster-error: The cluster answered with a server error, or is overloaded.
-> Try again; if it lasts, look at its API server.
eg kubectl --context=spoke-1 get --raw '/readyz?verbose'
cluster-bad-answer: What answers at the server's URL is no Kubernetes API: HTML, a redirect, half an answer.
-> Check the server URL; a proxy or login page may have answered.
eg kubectl --context=spoke-1 get --raw /version
clock-skew: This machine's clock differs from the server's, or from that of the token's issuer.
-> Correct it: signatures, tokens and certificates have times.
eg timedatectl status
groups-overage: Entra ID leaves a user's groups out of the token when there are more than 200.
-> Bind roles to the user itself, or let the application emit only groups that are assigned to it.
eg groupMembershipClaims: ApplicationGroup
identity-refused: STS does not accept the EKS token, so the cluster will not, either; the error has the code of STS.
-> Renew the AWS credentials that the plugin uses, and check the clock.
eg aws sts get-caller-identity
identity-unknown: Whose the EKS token is could not be asked; the cluster may accept it all the same.
-> Look at the reason in the message; give the cluster's name by flag, so that it can be asked.
eg "args": ["--cluster-name=spoke-1"]
server-unverified: insecure-skip-tls-verify is set: whoever answers could take the credential.
-> Give certificate-authority-data instead.
eg cluster: {server: https://spoke-1.example:6443, certificate-authority-data: LS0t…}
permissions-none: The cluster accepts the credential, and allows its user nothing.
-> Bind a Role or ClusterRole to the user or to one of its groups.
eg kubectl create clusterrolebinding fleet --clusterrole=view --user=system:serviceaccount:fleet:reader
"""
