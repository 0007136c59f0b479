package import Foundation

/// A small certificate authority of our own: the emulator's, whose certificate clients trust.
package struct CertificateAuthority: Sendable {
  package let certificate: Certificate
  package let key: P256PrivateKey

  /// Takes up an authority made earlier.
  /// - Throws: ``CryptographyError`` (malformed) when the two do not belong together.
  package init(certificate: Certificate, key: P256PrivateKey) throws(CryptographyError) {
    guard certificate.matches(key.anyKey) else {
      throw CryptographyError(
        .malformed, "The authority's private key does not belong to its certificate.")
    }
    (self.certificate, self.key) = (certificate, key)
  }

  /// Makes a new authority: P-256, self-signed, valid for ten years.
  package init(commonName: String, at now: Date = Date()) throws(CryptographyError) {
    key = try P256PrivateKey()
    certificate = try CertificateBuilder(
      commonName: commonName, notBefore: now - 86_400, notAfter: now + 10 * 365 * 86_400
    ).signed(subjectKey: key, issuer: nil, issuerKey: key)
  }

  /// What a leaf certificate says.
  package struct LeafRequest: Sendable {
    package var commonName: String
    /// The subject's UID; for APNs the bundle id.
    package var userID: String?
    /// Host names, a leading `*.` allowed.
    package var dnsNames: [String] = []
    /// Addresses in their usual text form, IPv4 or IPv6.
    package var ipAddresses: [String] = []
    /// May be presented by a server.
    package var serverAuthentication = true
    /// May be presented by a client.
    package var clientAuthentication = true
    /// Object identifiers from ``APNsExtension`` to add, with the topic list through ``topics``.
    package var apnsExtensions: [String] = []
    /// When not `nil`, adds ``APNsExtension/topics`` with this list.
    package var topics: [String]?
    /// From now on in seconds; negative makes a certificate that has expired.
    package var lifetime: TimeInterval = 365 * 86_400

    package init(commonName: String) { self.commonName = commonName }
  }

  /// Issues a certificate with a new P-256 key. It is valid from a day ago, for clocks that differ.
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
