"""Rules of `execcred lint`: `code: cause`, `-> remedy`, `eg example`."""

LINT_CODES = """
key-repeated: A key stands twice in one mapping: readers take the last one, or refuse the file.
-> Remove one of them.
eg "command": "/plugins/bin/eks-plugin" once
provider-file-not-json: The access library reads its provider file as JSON only.
-> Write it as JSON; `execcred provider-config` prints it so.
eg {"providers": [{"name": "secretreader", "execConfig": {"command": "/plugins/bin/secretreader-plugin"}}]}
provider-name-missing: Providers are found by name: one without is never used, and Kueue does not start.
-> Give it the name that status.accessProviders of ClusterProfiles has.
eg {"name": "secretreader", "execConfig": {}}
provider-repeated: Of two providers of one name only the first is used.
-> Remove or rename one.
eg "name": "eks-prod" and "name": "eks-test"
exec-config-missing: A provider without execConfig gives `no exec config found for provider`.
-> Add execConfig.
eg {"name": "secretreader", "execConfig": {"command": "/plugins/bin/secretreader-plugin"}}
kueue-both-lists: credentialsProviders and accessProviders are two names of one list, and exclude each other.
-> Keep credentialsProviders for Kueue 0.15 to 0.18, accessProviders for newer ones.
eg execcred provider-config --plugin=secretreader --for=kueue --credentials-providers
field-type: A field has another type than the consumer's decoder takes: the file cannot be loaded.
-> Give it the type that the finding names.
eg "provideClusterInfo": true instead of "provideClusterInfo": "true"
env-shape: env is a list of name and value in provider files, Kueue and kubeconfigs, but a map in Argo CD's Secrets.
-> Write it in the consumer's shape.
eg "env": [{"name": "AWS_REGION", "value": "eu-central-1"}]; Argo CD: "env": {"AWS_REGION": "eu-central-1"}
field-rejected: Kueue decodes its configuration strictly: an unknown field keeps it from starting.
-> Remove it; policies and execConfig.config do not exist there.
eg execcred provider-config --plugin=secretreader --for=kueue
field-ignored: The consumer knows no such field: it has no effect.
-> Remove it, or correct its spelling; config per cluster comes from the ClusterProfile alone.
eg extensions: [{name: client.authentication.k8s.io/exec, extension: {clusterName: spoke-1}}]
exec-version-invalid: The exec config's apiVersion is missing, or not served any more.
-> Set it to client.authentication.k8s.io/v1 (or /v1beta1).
eg "apiVersion": "client.authentication.k8s.io/v1"
api-version-flag-missing: Some clients send no exec info; without it the plugin answers v1beta1, which they refuse.
-> Add --api-version=v1 to args wherever apiVersion is v1.
eg args: [--api-version=v1]
interactive-mode-missing: client-go refuses v1 exec configs in kubeconfigs, and Kueue all, without interactiveMode.
-> Set Never for controllers, IfAvailable for people.
eg "interactiveMode": "Never"
interactive-mode-invalid: Clients know Never, IfAvailable and Always, spelt so, and refuse all else.
-> Set Never for controllers, IfAvailable for people.
eg "interactiveMode": "Never"
interactive-mode-always: A controller has no terminal, so a plugin that must have one never runs.
-> Set Never.
eg "interactiveMode": "Never"
command-missing: An exec config without a command cannot run anything.
-> Give the absolute path of the plugin.
eg "command": "/plugins/bin/secretreader-plugin"
command-relative: A relative command depends on the controller's working directory and PATH.
-> Give the absolute path at which the plugin is mounted.
eg "command": "/plugins/bin/secretreader-plugin"
command-wrapped: Shells and wrappers are not in consumers' images; they break deadlines, quoting and error texts.
-> Call the plugin itself; put what the wrapper sets into args and env.
eg "command": "/plugins/bin/eks-plugin", "args": ["--region=eu-central-1"]
command-outside-mount: Knative's chart fails unless each command starts with the mountPath of one of its plugins.
-> Put the command below mountPath.
eg command: /access-plugins/eks/bin/eks-plugin with mountPath: /access-plugins/eks
cluster-info-missing: The plugin is not told for which cluster it runs.
-> Set provideClusterInfo: true; Argo CD before 3.5 cannot: name the cluster by flags there.
eg "provideClusterInfo": true
install-hint-missing: Without installHint a missing executable gives a bare error of the operating system.
-> Say where the executable comes from.
eg "installHint": "mount the image of the eks plugin at /plugins"
arguments-invalid: The plugin would refuse these arguments.
-> Correct them as the finding says; `<name>-plugin --help` lists all.
eg eks-plugin --help
allow-server-missing: A token for a whole cloud goes wherever a profile's author points the server to.
-> Add --allow-server with the hosts of your clusters.
eg "args": ["--allow-server=*.eks.amazonaws.com"]
identity-unpinned: Guard flags let profiles choose the identity, or Secrets of every namespace.
-> Pin identity and namespace by flags, one provider for each; allow named namespaces only.
eg "args": ["--role-arn=arn:aws:iam::111122223333:role/fleet"]
policy-unknown: The library takes an unknown policy for Ignore.
-> Use Append or Ignore for args; Replace, AppendIfNotExists or Ignore for variables.
eg "profileSourcedCLIArgsPolicy": "Ignore"
policy-append-unsealed: Under Append a profile's args come last, and of a repeated flag the last one wins.
-> Leave the policy at Ignore; else end args with --profile-args, after which only a profile's rights are left.
eg "args": ["--region=eu-central-1", "--profile-args"]
policy-append-if-not-exists: The access library keeps what the first profile set: later clusters are given its values.
-> Put data of a cluster into the exec extension; if it must be variables, use Replace.
eg extension: {clusterName: spoke-1}
policy-replace: A profile's variables beat the admin's, and a plugin cannot tell them apart.
-> Leave it at Ignore and put data of a cluster into the exec extension.
eg "profileSourcedEnvVarsPolicy": "Ignore"
policy-ignores-profile: The ClusterProfile sends args or variables that its provider's policy drops.
-> Put them into the exec extension, which always arrives.
eg extensions: [{name: client.authentication.k8s.io/exec, extension: {region: eu-central-1}}]
env-dangerous: A variable that decides which code runs, who is asked or as whom; from a profile, anybody's.
-> Remove it; an admin sets proxies, endpoints and identities on the consumer's pod.
eg LD_PRELOAD, PYTHONPATH, HTTPS_PROXY, AWS_ENDPOINT_URL, GOOGLE_APPLICATION_CREDENTIALS
aws-profile-weak: AWS_PROFILE loses to AWS_ACCESS_KEY_ID, which the client may have: the token is of another account.
-> Name the AWS profile by flag, which beats keys in the environment.
eg "args": ["--profile=prod"] instead of "env": [{"name": "AWS_PROFILE", "value": "prod"}]
secret-in-config: A secret stands in a file that many can read, and clients print exec configs in errors.
-> Keep it in a Secret, and give it to the pod as a variable with secretKeyRef.
eg env: [{name: AZURE_CLIENT_SECRET, valueFrom: {secretKeyRef: {name: spn, key: secret}}}]
ca-too-large: Cluster info is one variable of at most 131072 bytes: with more CA data no plugin starts.
-> Keep only the CA that signed the server's certificate.
eg openssl storeutl -noout -text -certs ca.pem | grep Subject:
profile-field-deprecated: status.credentialProviders is deprecated, and gone in the next version of the API.
-> Write status.accessProviders.
eg status: {accessProviders: [{name: secretreader, cluster: {server: https://spoke-1.example:6443}}]}
profile-access-missing: The ClusterProfile has no access providers: no consumer can reach the cluster.
-> Look at the cluster manager that writes it; some need a feature gate for access providers.
eg kubectl get clusterprofile spoke-1 -o jsonpath='{.status}'
profile-server-missing: An access provider without a server leads nowhere.
-> Write cluster.server.
eg cluster: {server: https://spoke-1.example:6443}
profile-tls-dropped: The access library hands on server, certificate-authority-data and proxy-url only.
-> Give the server a certificate for the host name of its URL, and its CA as certificate-authority-data.
eg cluster: {server: https://spoke-1.example:6443, certificate-authority-data: LS0t…}
profile-sets-refused: The exec extension sets what the plugin lets only the admin set: it will answer profile-refused.
-> Set it by flag in the provider config, one provider for each identity.
eg "name": "eks-team-a", "args": ["--role-arn=arn:aws:iam::111122223333:role/team-a"]
provider-unmatched: No access provider of the ClusterProfile is in the provider files that were given.
-> Give a provider the name that the ClusterProfile has, or lint all provider files together.
eg execcred provider-config --plugin=secretreader --for=generic --name=open-cluster-management
extension-name-old: The extension has an older name that no consumer reads any more.
-> Use clusterprofiles.multicluster.x-k8s.io/exec/additional-args or …/additional-envs.
eg name: clusterprofiles.multicluster.x-k8s.io/exec/additional-args
extension-type: The extension has the wrong type: the access library fails on it, and on null it can crash.
-> additional-args is a list of strings, additional-envs a map of strings; leave them out when empty.
eg extension: ["--region=eu-central-1"]
"""
