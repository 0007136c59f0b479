package import Foundation

/// A small certificate authority of our own: the emulator's, whose certificate clients trust.
package struct CertificateAuthority: Sendable {
  package let certificate: Certificate
  package let key: P256PrivateKey

  /// Restores an existing authority.
  /// - Throws: ``CryptographyError`` (malformed) when the two do not belong together.
  package init(certificate: Certificate, key: P256PrivateKey) throws(CryptographyError) {
    guard certificate.matches(key.anyKey) else {
      throw CryptographyError(
        .malformed, "The authority's private key does not belong to its certificate.")
    }
    (self.certificate, self.key) = (certificate, key)
  }

  /// Creates a new authority: P-256, self-signed, valid for ten years.
  ///
  /// - Parameter domains: The only domains, besides this machine's names and addresses, that its
  ///   certificates are accepted for, each with what is below it (RFC 5280, section 4.2.1.10);
  ///   `nil` does not limit them.
  package init(
    commonName: String, onlyFor domains: [String]? = nil, at now: Date = Date()
  ) throws(CryptographyError) {
    key = try P256PrivateKey()
    var builder = CertificateBuilder(
      commonName: commonName, notBefore: now - 86_400, notAfter: now + 10 * 365 * 86_400)
    builder.permittedDomains = domains
    certificate = try builder.signed(subjectKey: key, issuer: nil, issuerKey: key)
  }

  /// The properties of a leaf certificate.
  package struct LeafRequest: Sendable {
    package var commonName: String
    /// The subject's UID; for APNs the bundle id.
    package var userID: String?
    /// Host names, a leading `*.` allowed.
    package var dnsNames: [String] = []
    /// Addresses in their usual text form, IPv4 or IPv6.
    package var ipAddresses: [String] = []
    /// Whether a server may present it.
    package var serverAuthentication = true
    /// Whether a client may present it.
    package var clientAuthentication = true
    /// Object identifiers from ``APNsExtension`` to add, with the topic list through ``topics``.
    package var apnsExtensions: [String] = []
    /// When not `nil`, adds ``APNsExtension/topics`` with this list.
    package var topics: [String]?
    /// Lifetime from now on in seconds; a negative one makes an expired certificate.
    package var lifetime: TimeInterval = 365 * 86_400

    package init(commonName: String) { self.commonName = commonName }
  }

  /// Issues a certificate with a new P-256 key. It is valid from a day ago, to allow for clock
  /// skew.
  package func issue(
    _ request: LeafRequest, at now: Date = Date()
  ) throws(CryptographyError) -> CertificateIdentity {
    let leafKey = try P256PrivateKey()
    var builder = CertificateBuilder(
      commonName: request.commonName, notBefore: min(now, now + request.lifetime) - 86_400,
      notAfter: now + request.lifetime)
    builder.leaf = request
    return try CertificateIdentity(
      certificate: try builder.signed(
        subjectKey: leafKey, issuer: certificate, issuerKey: key),
      privateKey: leafKey.anyKey)
  }

  /// Issues the certificate of a server on this machine: `localhost`, `127.0.0.1`, `::1` and any
  /// further names.
  package func issueForLocalhost(
    moreNames: [String] = [], at now: Date = Date()
  ) throws(CryptographyError) -> CertificateIdentity {
    var request = LeafRequest(commonName: "localhost")
    request.dnsNames = ["localhost"] + moreNames
    request.ipAddresses = ["127.0.0.1", "::1"]
    request.clientAuthentication = false
    return try issue(request, at: now)
  }
}
