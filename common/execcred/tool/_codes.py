"""Codes of the layer, the secret readers and this tool: `code: cause`, `-> remedy`, `eg example`."""

CODES = """
usage: A flag, word or file name is wrong or missing; the error names it, and the nearest flag that is known.
-> Correct the command line; --help lists what is accepted. A value that begins with a dash needs --name=VALUE.
eg secretreader-plugin --cluster-name=spoke-1
setting-invalid: A flag or variable has a value of the wrong form; the error names it and the form.
-> Write durations as 8, 30s or 2m, lists with commas, booleans as true or false, choices as --help spells them.
eg eks-plugin --timeout=30s --cluster-name=spoke-1
config-invalid: A key of the ClusterProfile's exec extension has the wrong JSON type, or a bad value.
-> Correct the extension client.authentication.k8s.io/exec of the access provider; texts need quotes.
eg {"clusterName": "5"} instead of {"clusterName": 5}
profile-refused: The ClusterProfile sets something that only the admin may: identity, namespace, file, endpoint, code.
-> Set it by the flag that the hint names, or open it with the --allow-… flag that the hint names.
eg "args": ["--allow-namespace=team-a"]
exec-info-invalid: KUBERNETES_EXEC_INFO is not an ExecCredential object, or a field of it has the wrong type.
-> Clients set the variable themselves: unset it when you run a plugin by hand.
eg env -u KUBERNETES_EXEC_INFO secretreader-plugin --cluster-name=spoke-1
api-version-unsupported: The client asks for a version of the exec credential API that does not exist any more, or yet.
-> Set apiVersion of the exec config to client.authentication.k8s.io/v1 or /v1beta1.
eg "apiVersion": "client.authentication.k8s.io/v1"
server-refused: The cluster's server, or its proxy, is not in --allow-server, or TLS verification is off for it.
-> Correct the ClusterProfile; if the host is right, add it to --allow-server of the provider config.
eg "args": ["--allow-server=*.eks.amazonaws.com,*.example.org:6443"]
server-unknown: --allow-server or --discover needs the cluster's server, and the client sent none.
-> Set provideClusterInfo: true in the exec config; Argo CD sends cluster info from 3.5 on.
eg "provideClusterInfo": true
credential-incomplete: There is neither a token nor a whole pair of client certificate and key.
-> Store a token, or both certificate and key, where the plugin reads the credential.
eg kubectl create secret tls spoke-1 --cert=client.crt --key=client.key
credential-expired: The token or certificate has ended; handing it out would only lead to 401.
-> Renew it at its source; for service account tokens look at what rotates the Secret. Check the clock.
eg kubectl get secret spoke-1 -o yaml
token-invalid: What should be a token holds a character that no HTTP header can carry; the error tells the position.
-> Store the bare token: base64-encoded once by the Secret's data, not twice, no quotes, one line.
eg kubectl create secret generic spoke-1 --from-file=token=./token
certificate-invalid: The client certificate is not PEM, is encrypted, or its key is another certificate's.
-> Store a matching pair of unencrypted PEM texts.
eg openssl x509 -in client.crt -noout -pubkey; openssl pkey -in client.key -pubout
certificate-not-yet-valid: The client certificate starts in the future.
-> Check the clock of this machine and of the one that issued it.
eg openssl x509 -in client.crt -noout -dates
deadline: The plugin ended itself: a client holds a lock while it runs. The error names what it waited for.
-> Try again; if that step is slow, look at network, DNS and proxy, or raise --timeout.
eg "args": ["--timeout=20s"]
interrupted: A person or the client ended the plugin.
-> Run it again.
eg secretreader-plugin --cluster-name=spoke-1
internal: An error that should not exist: a fault of the plugin or of the SDK that it uses.
-> Run it with --log-level=debug, which shows places in the code and no secrets, and report that.
eg EXECCRED_LOG_LEVEL=debug kubectl get nodes
library-missing: A library that is needed, a cloud's SDK, PyYAML or PySocks, is not installed.
-> Install with the plugin's extra, `tool` for the tool, `access` for the library; zipapps and images have all that.
eg pip install '.[eks,tool]'
stdout-closed: Nobody reads what the plugin prints.
-> Look at the client that started it: it went away, or closed stdout.
eg secretreader-plugin --cluster-name=spoke-1 >credential.json
output-impossible: --output=token was asked for, but the credential is a client certificate.
-> Leave --output out: the JSON answer holds certificate and key.
eg secretreader-plugin --cluster-name=spoke-1
install-impossible: `install DIR` copies the tree of the OCI image, and this is another form of the plugin.
-> Run it in the image; a zipapp is installed by copying its one file.
eg initContainers: [{name: install, image: IMAGE, args: [install, /plugins]}]
hub-none: There is neither a kubeconfig nor a service account to read the Secret with.
-> Give --kubeconfig, set KUBECONFIG, or run in a pod of the hub with a mounted service account token.
eg secretreader-plugin --kubeconfig=/etc/hub/kubeconfig --cluster-name=spoke-1
hub-config: The hub's kubeconfig cannot be used; the error names the field.
-> Correct it: it needs a context with an https server, and a token or client certificate, not an exec plugin.
eg kubectl --kubeconfig=/etc/hub/kubeconfig config view --minify
hub-unreachable: The hub does not answer: DNS, network, proxy, or nothing in time.
-> Check the server URL of the named source, HTTPS_PROXY and NO_PROXY; try again.
eg kubectl --kubeconfig=/etc/hub/kubeconfig get --raw /readyz
hub-tls: The hub's certificate is not trusted, or what answers speaks no TLS.
-> Correct certificate-authority(-data) or tls-server-name of the hub's kubeconfig.
eg kubectl --kubeconfig=/etc/hub/kubeconfig cluster-info
hub-unauthorized: The hub answered 401: it does not know the identity that the plugin uses.
-> Renew the credential of the named source: service account token, kubeconfig's token or certificate.
eg kubectl --kubeconfig=/etc/hub/kubeconfig auth whoami
hub-forbidden: The hub answered 403: the identity may not read that Secret; verb, namespace and name are in the hint.
-> Grant get on that Secret by Role and RoleBinding in its namespace.
eg execcred provider-config --plugin=secretreader --for=kueue --part=rbac
hub-throttled: The hub answered 429: it is overloaded, or a priority level is full.
-> Try again later; look at flow control if it lasts.
eg kubectl get --raw /metrics | grep apiserver_flowcontrol_rejected
hub-error: The hub answered with a server error.
-> Try again; if it lasts, look at the hub's API server and etcd.
eg kubectl get --raw '/readyz?verbose'
hub-bad-answer: What answered is no Kubernetes API: HTML, a redirect, half an answer, or too large a one.
-> Check that the server URL is the API server's; a proxy or login page may have answered.
eg kubectl --kubeconfig=/etc/hub/kubeconfig get --raw /version
namespace-missing: Neither a flag nor the hub's source names a namespace to read the Secret from.
-> Give --namespace, or set the namespace of the kubeconfig's context.
eg "args": ["--namespace=fleet"]
secret-name-invalid: The name of Secret or namespace cannot be one.
-> Correct the ClusterProfile's config: lower case letters, digits, dashes and dots (RFC 1123).
eg {"clusterName": "spoke-1"}
secret-name-missing: kubeconfig-secretreader does not know which Secret to read.
-> Put name into the extension client.authentication.k8s.io/exec and set provideClusterInfo, or give --secret-name.
eg {"name": "spoke-1-kubeconfig", "key": "value"}
cluster-name-missing: secretreader does not know which cluster's Secret to read; the error tells what did not arrive.
-> Put clusterName into the extension client.authentication.k8s.io/exec and set provideClusterInfo: true.
eg extensions: [{name: client.authentication.k8s.io/exec, extension: {clusterName: spoke-1}}]
secret-missing: The hub has no such Secret; namespace and name are in the error.
-> Check name, --secret-name-template and namespace; plugins read the consumer's own namespace.
eg kubectl get secret -n kueue-system spoke-1
secret-key-missing: The Secret has no such key; the hint lists those that are there.
-> Choose one with --key, or the config's key.
eg "args": ["--key=value"]
secret-key-empty: The key is there, but empty: a service account token Secret is filled in a moment later.
-> Try again; if it stays empty, look whether its service account exists.
eg kubectl describe secret -n fleet spoke-1
kubeconfig-refused: The kubeconfig in the Secret cannot be used: broken, ambiguous, or it names files or programs.
-> Embed token or client-certificate-data and client-key-data; exec, auth-provider and paths are never followed.
eg kubectl config view --raw --minify --flatten
server-mismatch: --check-server=enforce: the kubeconfig in the Secret is for another server than the ClusterProfile's.
-> Correct the ClusterProfile's server, or the kubeconfig.
eg kubectl get clusterprofile spoke-1 -o jsonpath='{.status.accessProviders[*].cluster.server}'
code-unknown: `execcred explain` was asked for a code that does not exist.
-> Give what stands in brackets at the end of an error line or lint finding; --all lists them.
eg execcred explain hub-forbidden
file-unusable: A file cannot be read, is neither JSON nor YAML (the error tells the line), or nothing that lint knows.
-> Name the right file; lint takes provider files, ClusterProfiles, kubeconfigs, cluster Secrets, Kueue configuration.
eg kubectl get clusterprofiles -A -o yaml | execcred lint - provider-file.json
combination-impossible: These flags of `execcred provider-config` make no sense together; the error tells why.
-> As the hint says.
eg execcred provider-config --plugin=secretreader --for=ocm
secret-in-arguments: A secret would be written into a configuration file that many can read.
-> Keep it in a Secret, and give it to the consumer's pod as a variable.
eg env: [{name: AZURE_CLIENT_SECRET, valueFrom: {secretKeyRef: {name: spn, key: secret}}}]
"""
