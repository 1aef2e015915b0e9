//! A certificate authority of a test's.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Signs server certificates.
pub(crate) struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// What a server shows to its clients.
#[derive(Clone)]
pub(crate) struct Identity {
    /// The first of its names, which its URL has.
    pub(super) name: String,
    /// Its side of handshakes. The only protocol is HTTP/1.1.
    pub(super) acceptor: TlsAcceptor,
    /// Its authority's certificate, in PEM.
    pub(super) authority: String,
}

impl Authority {
    /// One that nobody knows yet.
    pub(crate) fn fresh(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key pair can be made");
        let certificate = params.self_signed(&key).expect("an authority signs itself").pem();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// One whose certificate and PKCS#8 key are PEM files.
    pub(crate) fn load(certificate: &Path, key: &Path) -> Self {
        let certificate = fs::read_to_string(certificate).expect("the authority's certificate can be read");
        let key = fs::read_to_string(key).expect("the authority's key can be read");
        let key = KeyPair::from_pem(&key).expect("the authority's key is PKCS#8");
        let issuer = Issuer::from_ca_cert_pem(&certificate, key).expect("the certificate is an authority's");
        Self { certificate, issuer }
    }

    /// Its certificate, in PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.certificate
    }

    /// A new key and a certificate for IP addresses and DNS names, at least one.
    pub(crate) fn identity(&self, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let name = names.first().expect("a server has a name").clone();
        let mut params = CertificateParams::new(names).expect("an IP address or a DNS name");
        params.distinguished_name.push(DnType::CommonName, name.as_str());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // Strict verifiers, such as Python's, ask for it.
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().expect("a key pair can be made");
        let certificate = params.signed_by(&key, &self.issuer).expect("an authority signs");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("PKCS#8");
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring has every version")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("the key is the certificate's");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Identity { name, acceptor: TlsAcceptor::from(Arc::new(config)), authority: self.certificate.clone() }
    }

    /// A client's side of handshakes, for one that trusts this authority only.
    pub(crate) fn connector(&self) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(der(&self.certificate)).expect("an authority can be trusted");
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring has every version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    }
}

/// The first certificate of a PEM text.
pub(super) fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate is PEM")
}

/// Named, so that nothing depends on what a process has as its default.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
