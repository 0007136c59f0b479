import Cryptography
import HTTP2

/// Certificates for the tests, made once per run.
enum TestKeys {
  struct Identity: Sendable {
    let certificatePEM: [UInt8]
    let keyPEM: [UInt8]
    let der: [UInt8]

    init(_ identity: CertificateIdentity) throws {
      certificatePEM = Array(identity.certificatePEM.utf8)
      keyPEM = Array(try identity.privateKeyPEM().utf8)
      der = identity.certificate.der
    }
  }

  struct Material: Sendable {
    let authorityPEM: [UInt8]
    let otherAuthorityPEM: [UInt8]
    let server: Identity
    let client: Identity
    let strangeClient: Identity
  }

  static let material: Result<Material, any Error> = Result {
    let authority = try CertificateAuthority(commonName: "HTTP2 tests")
    let other = try CertificateAuthority(commonName: "Not trusted")
    let request = CertificateAuthority.LeafRequest(commonName: "client")
    return Material(
      authorityPEM: Array(authority.certificate.pem.utf8),
      otherAuthorityPEM: Array(other.certificate.pem.utf8),
      server: try Identity(authority.issueForLocalhost()),
      client: try Identity(authority.issue(request)),
      strangeClient: try Identity(other.issue(request)))
  }
}
