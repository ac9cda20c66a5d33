"""Codes of the cloud plugins eks, gke and aks: `code: cause`, `-> remedy`, `eg example`."""

CLOUD_CODES = """
throttled: The cloud's token service answered 429 (Entra ID: AADSTS50196), or told to wait beyond the deadline.
-> Try again later; share one token between clusters with --cache-dir.
eg "args": ["--cache-dir=/cache"] with an emptyDir of medium Memory at /cache
tls-untrusted: The certificate of the cloud's endpoint is not trusted, mostly as a proxy inspects TLS.
-> Put the proxy's CA, with the public ones, into a file and name it in SSL_CERT_FILE or REQUESTS_CA_BUNDLE.
eg env: [{name: SSL_CERT_FILE, value: /etc/ssl/corporate.pem}]
proxy-failed: The proxy failed, or refused to connect to the cloud.
-> Check HTTPS_PROXY and NO_PROXY of the consumer's pod.
eg curl -v -x "$HTTPS_PROXY" https://oauth2.googleapis.com/
proxy-invalid: HTTPS_PROXY is no http URL.
-> Write it as http://HOST:PORT.
eg HTTPS_PROXY=http://proxy.example:3128
endpoint-invalid: AWS_ENDPOINT_URL_STS or AWS_ENDPOINT_URL is no http or https URL.
-> Write it with its scheme, or unset it: without it the region's own STS is asked.
eg AWS_ENDPOINT_URL_STS=https://vpce-0a1b2c3d.sts.eu-central-1.vpce.amazonaws.com
ca-file: The file of CA certificates that a variable names cannot be used.
-> Name a PEM file that the plugin's user can read.
eg REQUESTS_CA_BUNDLE=/etc/ssl/corporate.pem
ca-invalid: The file of CA certificates that a variable names is no PEM file of certificates.
-> Name a PEM file with all CAs that are needed, the public ones included.
eg SSL_CERT_FILE=/etc/ssl/corporate.pem
clock-wrong: This machine's clock is minutes off (the error tells how many), and clouds refuse what it signs.
-> Set the clock (NTP); in containers, the node's.
eg timedatectl status
file-unreadable: A file that a setting or variable names cannot be read; the error tells path and reason.
-> Check path, mount and permissions; for projected tokens set fsGroup of the pod to the plugin's group.
eg securityContext: {fsGroup: 65532}
answer-invalid: What answered, or the command-line tool that was run, gave something else than a token.
-> Check host, proxy and credential file; run the tool by hand.
eg az account get-access-token --scope 6dae42f8-4368-4678-94ff-3960e28e3630/.default
login-expired: A person's sign-in is over or revoked, wants more (MFA, consent), or nobody came in time.
-> Sign in again with the command in the hint; controllers should use workload identity instead.
eg gcloud auth application-default login
credentials-none: No source of the cloud's SDK has credentials; the error lists those that were looked at.
-> Set up the cloud's workload identity for the consumer's service account.
eg EKS Pod Identity or IRSA; Workload Identity Federation for GKE; Microsoft Entra Workload ID
credentials-refused: The cloud does not accept these credentials: deleted, disabled, mistyped or another's.
-> Check or renew them at their source; temporary AWS keys also need AWS_SESSION_TOKEN.
eg aws sts get-caller-identity
metadata-failed: The EC2 metadata server gave no credentials.
-> Give the instance a role; in containers raise its metadata hop limit to 2.
eg aws ec2 modify-instance-metadata-options --instance-id ID --http-put-response-hop-limit 2
cluster-missing: eks does not know which cluster the token is for.
-> Put clusterName into the exec extension and set provideClusterInfo, or give --cluster-name or --discover.
eg extension: {clusterName: spoke-1, region: eu-central-1}
cluster-invalid: What is given is neither name, id nor ARN of an EKS cluster.
-> Write the name, or arn:aws:eks:REGION:ACCOUNT:cluster/NAME.
eg --cluster-name=arn:aws:eks:eu-central-1:111122223333:cluster/spoke-1
cluster-unknown: --discover found no cluster in the region that has this server.
-> Give --cluster-name, another --region, or an identity of the cluster's account.
eg aws eks list-clusters --region eu-central-1
region-missing: Neither flag, ARN, server, config nor environment tell the cluster's region.
-> Give --region, the ARN, or region in the exec extension; it is the cluster's region, not the pod's.
eg --region=eu-central-1
region-invalid: What is given is no region.
-> Write it like eu-central-1.
eg --region=cn-north-1
region-disabled: The region, or STS in it, is not enabled in the AWS account.
-> Enable it in the account's settings.
eg aws account enable-region --region-name me-south-1
credentials-partial: AWS_ACCESS_KEY_ID is set without AWS_SECRET_ACCESS_KEY.
-> Set both, or neither.
eg unset AWS_ACCESS_KEY_ID
credentials-invalid: An AWS variable holds what no key or date can be; the error names variable and position.
-> Set the bare value, without blanks, quotes or line breaks.
eg AWS_CREDENTIAL_EXPIRATION=2026-01-31T12:00:00Z
credentials-expired: The AWS credentials are over.
-> Renew them at their source.
eg aws sso login --profile prod
token-too-long: The token is longer than EKS takes (4,096 bytes): the credentials' session token is too long.
-> Use a role session with fewer or shorter session tags and policies.
eg aws sts assume-role without --tags
aws-unreachable: An AWS endpoint cannot be reached; the error names the host.
-> Check network, DNS, proxy and VPC endpoint.
eg curl -v https://sts.eu-central-1.amazonaws.com/
aws-tls: An AWS endpoint shows a certificate that is not trusted.
-> Behind a proxy that inspects TLS, set AWS_CA_BUNDLE to a file with its CA.
eg AWS_CA_BUNDLE=/etc/ssl/corporate.pem
aws-bad-answer: What answered is not AWS: a proxy or captive portal may have.
-> Check HTTPS_PROXY, NO_PROXY and AWS_ENDPOINT_URL_STS.
eg curl -v https://sts.eu-central-1.amazonaws.com/
aws-error: AWS answered with a server error.
-> Try again later.
eg kubectl get nodes
aws-throttled: AWS answered that requests come too often.
-> Try again later; --cache-dir shares a role's session between clusters.
eg "args": ["--cache-dir=/cache"]
aws-refused: AWS refused; the error names its code and the operation.
-> Grant what the hint names.
eg {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "arn:aws:iam::111122223333:role/fleet"}
aws-profile-missing: The AWS profile is not in the AWS config.
-> Correct --profile or AWS_PROFILE, or point AWS_CONFIG_FILE to the file that has it.
eg aws configure list-profiles
aws-config-invalid: The AWS config cannot be parsed, or settings of the profile do not fit together.
-> Check role_arn, source_profile, credential_source, sso_session and web_identity_token_file.
eg aws configure list --profile prod
aws-file-unreadable: A file of the AWS profile, or its web identity token, cannot be read.
-> Check path and permissions; for projected tokens set fsGroup of the pod to the plugin's group.
eg securityContext: {fsGroup: 65532}
aws-login-needed: The session of `aws login` is missing or over.
-> Run the command in the hint.
eg aws login --profile dev
sso-login-needed: The SSO session of the AWS profile is missing or over.
-> Run the command in the hint.
eg aws sso login --profile dev
mfa-needed: The AWS profile asks for an MFA code, and nobody may be asked.
-> Run the plugin once in a terminal with the same --profile and --cache-dir, or use a source without MFA.
eg eks-plugin --profile=dev --cache-dir=$HOME/.cache/execcred --cluster-name=spoke-1
web-identity-refused: AWS does not accept the pod's web identity token.
-> IAM needs an identity provider for the hub's OIDC issuer, with audience sts.amazonaws.com.
eg eksctl utils associate-iam-oidc-provider --cluster hub --approve
credential-process-failed: The credential_process of the AWS profile failed, or printed something else.
-> Run its command by hand: it must exit 0 and print Version, AccessKeyId and SecretAccessKey as JSON.
eg aws configure get credential_process --profile dev
container-credentials-failed: The container credentials endpoint (EKS Pod Identity, ECS) gave none.
-> Look at the Pod Identity association and agent, and at AWS_CONTAINER_CREDENTIALS_FULL_URI.
eg aws eks list-pod-identity-associations --cluster-name hub
proxy-unreachable: The proxy cannot be reached.
-> Check HTTPS_PROXY and NO_PROXY.
eg NO_PROXY=169.254.169.254,169.254.170.23
source-failed: A source of AWS credentials gave no usable ones; the error names it.
-> Look at it with the AWS CLI.
eg aws configure list
source-unsupported: A source of AWS credentials needs a native library that is not installed.
-> Use another source, or install botocore[crt] beside the plugin.
eg pip install 'botocore[crt]'
account-invalid: What --impersonate-service-account names is no service account.
-> Write e-mail addresses, delegates first and the target last.
eg --impersonate-service-account=fleet@my-project.iam.gserviceaccount.com
account-missing: There is no such Google service account.
-> Correct --impersonate-service-account, or the URL in the credential file.
eg gcloud iam service-accounts list
api-disabled: The IAM Service Account Credentials API is not enabled in the project.
-> Enable it.
eg gcloud services enable iamcredentials.googleapis.com
credential-file-invalid: The Google credential file cannot be used; the error tells why.
-> Make it anew.
eg gcloud iam workload-identity-pools create-cred-config …
executable-failed: The executable of the credential file gave no subject token.
-> Run it by hand: it must exit 0 and print nothing but the JSON that google-auth documents.
eg GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1 ./executable
executable-not-allowed: The credential file wants to run a program, which google-auth allows by a variable only.
-> Set the variable if you trust that file.
eg GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1
federation-refused: Google's identity pool does not accept the subject token.
-> Check the pool provider's issuer, audience and attribute condition, and that the token is not over.
eg gcloud iam workload-identity-pools providers describe PROVIDER --workload-identity-pool POOL --location global
google-error: Google answered with a server error.
-> Try again later.
eg kubectl get nodes
impersonation-denied: The identity may not impersonate the Google service account.
-> Grant roles/iam.serviceAccountTokenCreator on it to the identity before it in the chain.
eg gcloud iam service-accounts add-iam-policy-binding TARGET --member=… --role=roles/iam.serviceAccountTokenCreator
impersonation-invalid: Google does not allow this lifetime or chain.
-> Beyond 1h, an organisation policy must list the account; else leave --lifetime out.
eg constraints/iam.allowServiceAccountCredentialLifetimeExtension
key-refused: The Google service account or its key is deleted, disabled or over.
-> Make a new key, or better: use workload identity.
eg gcloud iam service-accounts keys list --iam-account fleet@my-project.iam.gserviceaccount.com
login-scopes: The Google login does not cover the scopes cloud-platform and userinfo.email.
-> Sign in again with the scopes in the hint.
eg gcloud auth application-default login --scopes=openid,https://www.googleapis.com/auth/cloud-platform,…
metadata-invalid: The metadata server answered something that is no token.
-> See what answers at that address: a proxy, or a metadata server of another cloud.
eg curl -H 'Metadata-Flavor: Google' http://169.254.169.254/computeMetadata/v1/
metadata-refused: The metadata server has no service account for this pod or machine.
-> On GKE, bind the Kubernetes service account to a Google one, or grant it roles itself; on a VM, attach one.
eg annotations: {iam.gke.io/gcp-service-account: fleet@my-project.iam.gserviceaccount.com}
metadata-unavailable: The metadata server does not answer: it starts after the pod, or is blocked.
-> Try again; if it stays so, look at NetworkPolicies for 169.254.169.254:80 and 169.254.169.252:988.
eg kubectl get networkpolicy -A
quota-project-denied: The quota project may not be used by this identity.
-> Grant roles/serviceusage.serviceUsageConsumer in it, or choose another with --quota-project.
eg --quota-project=my-project
subject-token: The subject token of the external account cannot be read.
-> Check credential_source of the credential file: file or url, format, subject_token_field_name.
eg "credential_source": {"file": "/var/run/secrets/tokens/gcp"}
universe-mismatch: The credentials are of another universe (cloud) than the one asked for.
-> Correct --universe-domain or the credential file.
eg --universe-domain=googleapis.com
unreachable: Google cannot be reached, or does not answer in time.
-> Check DNS, network policy and HTTPS_PROXY; try again, or raise --timeout.
eg curl -v https://oauth2.googleapis.com/
network: Entra ID, a metadata endpoint or a tool cannot be reached.
-> Check network, DNS and HTTPS_PROXY; outside Azure, choose another --login than msi.
eg curl -v https://login.microsoftonline.com/
access-blocked: Conditional Access, a missing assignment or a disabled account blocks the sign-in.
-> Ask the tenant's administrator to look into the sign-in log.
eg Entra admin center, Monitoring, Sign-in logs
assertion-expired: Entra ID says that the signed assertion is over, or not valid yet (AADSTS700024).
-> Correct this machine's clock; see that the federated token file is renewed.
eg timedatectl status
authority-invalid: --authority-host is no https URL.
-> Write it like https://login.microsoftonline.com/.
eg --authority-host=https://login.microsoftonline.us/
browser-missing: --login=interactive needs a browser on this machine, and there is none.
-> Use --login=devicecode, whose code can be typed in on another machine.
eg aks-plugin --login=devicecode --client-id=80faf920-1908-4b52-b5ef-a8e7bedfc67a --tenant-id=TENANT_ID
client-certificate-invalid: The client certificate file cannot be used; the error tells why.
-> Name a PEM or PFX file with certificate and RSA key, and its password by variable.
eg openssl pkcs12 -in spn.pfx -info -noout
client-certificate-refused: The Entra application does not know this certificate (AADSTS700027).
-> Upload it to the application, or set --send-certificate-chain for trust by subject name and issuer.
eg az ad app credential list --id CLIENT_ID --cert
client-secret-wrong: The client secret is another one's (AADSTS7000215); often its id was given instead of its value.
-> Give the value.
eg az ad app credential reset --id CLIENT_ID
client-secret-expired: The client secret has expired (AADSTS7000222).
-> Make a new one, or better: use workload identity.
eg az ad app credential reset --id CLIENT_ID
client-unknown: The tenant has no such application (AADSTS700016).
-> Check client id and tenant id, and where they come from.
eg az ad sp show --id CLIENT_ID
entra-refused: Entra ID refused; the error has its AADSTS code.
-> Look the code up, and check identity and tenant that the hint names.
eg https://login.microsoftonline.com/error?code=50011
environment-unknown: No such Azure cloud.
-> Use AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud; for another set --authority-host.
eg --environment=AzureUSGovernmentCloud
federated-credential-mismatch: No federated credential of the application fits the token (AADSTS70021, 700211-700213).
-> Add one with issuer, subject and audience that the hint names.
eg az identity federated-credential create --identity-name fleet --issuer URL --subject system:serviceaccount:NS:SA
federated-token-invalid: The federated token file holds no token.
-> Check AZURE_FEDERATED_TOKEN_FILE, and the label azure.workload.identity/use on the pod.
eg labels: {azure.workload.identity/use: "true"}
federated-token-expired: The federated token file holds a token that is over: nothing renews it.
-> Mount a projected service account token, which the kubelet renews; check the clock.
eg volumes: [{projected: {sources: [{serviceAccountToken: {audience: api://AzureADTokenExchange, path: token}}]}}]
federated-token-early: The federated token starts in the future.
-> Correct this machine's clock.
eg timedatectl status
identity-unassigned: This machine or pod has no such managed identity.
-> Assign it, or correct --client-id.
eg az vm identity show --name VM --resource-group GROUP
login-missing: No login mode is chosen, and no federated token file tells one.
-> Give --login.
eg "args": ["--login=workloadidentity"]
login-unknown: No such login mode.
-> Use one that the error lists.
eg --login=msi
login-needed: Nobody is signed in, and nobody may be asked here.
-> Run the command in the hint.
eg az login --tenant TENANT_ID
login-failed: The Azure SDK gave up for a reason that it does not tell.
-> Run it with --log-level=debug.
eg aks-plugin --login=azurecli --log-level=debug
server-error: Entra ID or a metadata endpoint has a passing fault.
-> Try again.
eg kubectl get nodes
server-id-unknown: The tenant has no application with this server id (AADSTS500011).
-> Leave --server-id out for AKS.
eg aks-plugin --login=workloadidentity
settings-conflict: Two identities, or secret and certificate, are given where only one may be.
-> Unset one, or give the one that shall count as a flag.
eg env -u AZURE_CLIENT_SECRET aks-plugin --login=spn --client-certificate=/etc/spn/spn.pem
settings-missing: The login mode lacks settings; the error names all of them.
-> Give the flags, or the variables that the hint names.
eg aks-plugin --login=spn --client-id=… --tenant-id=… with AZURE_CLIENT_SECRET
tenant-invalid: What is given is neither id nor domain of a tenant.
-> Write the tenant's id, or a domain such as contoso.onmicrosoft.com.
eg --tenant-id=contoso.onmicrosoft.com
tenant-unknown: Entra ID has no such tenant (AADSTS90002).
-> Check the tenant id, and that it is in this --environment.
eg az account show --query tenantId
tool-missing: az or azd is not in PATH.
-> Install it, set PATH, or use another --login: consumers' images have neither.
eg --login=workloadidentity
tool-cache-corrupt: az or azd cannot read its own token cache.
-> Clear it and sign in again.
eg az account clear
tool-failed: az or azd failed.
-> Run the command in the hint to see its message.
eg az account get-access-token --scope 6dae42f8-4368-4678-94ff-3960e28e3630/.default
unsupported: A flag of kubelogin's for legacy, password or proof-of-possession login; the hint tells why.
-> Use another login mode, or kubelogin for proof-of-possession tokens.
eg --login=spn instead of --login=ropc
"""
