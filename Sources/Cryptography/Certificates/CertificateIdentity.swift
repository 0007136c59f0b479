/// A certificate with its private key and the certificates between it and its authority: what one
/// side of a TLS session presents.
package struct CertificateIdentity: Sendable {
  package let certificate: Certificate
  /// The issuers, nearest first, without the leaf; may be empty.
  package let chain: [Certificate]
  package let privateKey: PrivateKey

  /// - Throws: ``CryptographyError`` (malformed) when the key is not the certificate's.
  package init(
    certificate: Certificate, chain: [Certificate] = [], privateKey: PrivateKey
  ) throws(CryptographyError) {
    guard certificate.matches(privateKey) else {
      throw CryptographyError(.malformed, "The private key does not belong to the certificate.")
    }
    (self.certificate, self.chain, self.privateKey) = (certificate, chain, privateKey)
  }

  /// Parses PEM text: the first certificate is the leaf, the others its chain.
  package init(certificatePEM: String, privateKeyPEM: String) throws(CryptographyError) {
    let certificates = try Certificate.all(inPEM: certificatePEM)
    guard let leaf = certificates.first else {
      throw CryptographyError(.malformed, "The text holds no PEM block 'CERTIFICATE'.")
    }
    try self.init(
      certificate: leaf, chain: Array(certificates.dropFirst()),
      privateKey: try PrivateKey(pem: privateKeyPEM))
  }

  /// The leaf followed by its chain as PEM text.
  package var certificatePEM: String { ([certificate] + chain).map(\.pem).joined() }

  /// The private key as PEM text. Secret: never log it.
  package func privateKeyPEM() throws(CryptographyError) -> String { try privateKey.pem() }
}
