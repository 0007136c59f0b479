import COpenSSL

/// PKCS#12 archives (`.p12`, RFC 7292): a certificate with its private key under a password.
package enum PKCS12 {
  /// More rounds of key derivation than any tool writes; an archive asking for more only costs time.
  static let mostRounds = 5_000_000
  private static let largestSize = 1 << 20

  /// Opens an archive.
  ///
  /// Old exports encrypt their certificates with RC2-40, which OpenSSL 3 keeps in its `legacy`
  /// provider; it is loaded for such an archive alone, in a library context that ends with it.
  /// - Throws: ``CryptographyError``: malformed when this is no archive, or one without certificate
  ///   or key; wrongPassword; unsupported when the cipher is not to be had.
  package static func open(
    _ archive: [UInt8], password: String
  ) throws(CryptographyError) -> CertificateIdentity {
    defer { OpenSSLErrors.drain() }
    guard archive.count <= largestSize, let handle = ArchiveHandle(der: archive, context: nil)
    else {
      throw CryptographyError(
        .malformed, "The data is not a PKCS#12 archive (.p12); export certificate and key again.")
    }
    try checkPassword(handle, password)
    if let identity = try parse(handle, password) { return identity }
    OpenSSLErrors.drain()
    return try openWithLegacyCiphers(archive, password: password)
  }

  /// Makes an archive with OpenSSL's present ciphers (PBES2, AES-256).
  package static func make(
    _ identity: CertificateIdentity, password: String, name: String
  ) throws(CryptographyError) -> [UInt8] {
    defer { OpenSSLErrors.drain() }
    let chain = OPENSSL_sk_new_null()
    defer { OPENSSL_sk_free(chain) }
    for certificate in identity.chain {
      // Borrowed: the stack's items are not freed with it.
      OPENSSL_sk_push(chain, UnsafeRawPointer(certificate.pointer))
    }
    guard
      let archive = PKCS12_create(
        password, name, identity.privateKey.handle.pointer, identity.certificate.pointer, chain,
        0, 0, 0, 0, 0)
    else { throw .engine("make a PKCS#12 archive") }
    defer { PKCS12_free(archive) }
    return try DEROutput.bytes("export a PKCS#12 archive") { i2d_PKCS12(archive, $0) }
  }

  private static func checkPassword(
    _ archive: ArchiveHandle, _ password: String
  ) throws(CryptographyError) {
    guard PKCS12_mac_present(archive.pointer) == 1 else { return }
    var rounds: UnsafePointer<ASN1_INTEGER>?
    PKCS12_get0_mac(nil, nil, nil, &rounds, archive.pointer)
    guard rounds.map({ (0...mostRounds).contains(ASN1_INTEGER_get($0)) }) ?? true else {
      throw CryptographyError(
        .unsupported, "The PKCS#12 archive asks for more than \(mostRounds) rounds of hashing.")
    }
    // An absent password and an empty one are two different things to a PKCS#12 writer.
    guard
      PKCS12_verify_mac(archive.pointer, password, -1) == 1
        || (password.isEmpty && PKCS12_verify_mac(archive.pointer, nil, 0) == 1)
    else {
      throw CryptographyError(
        .wrongPassword, "The PKCS#12 archive does not open with this password.")
    }
  }

  /// - Returns: `nil` when OpenSSL cannot decrypt what is inside.
  private static func parse(
    _ archive: ArchiveHandle, _ password: String
  ) throws(CryptographyError) -> CertificateIdentity? {
    try checkWork(archive.pointer, password)
    OpenSSLErrors.drain()
    var key: OpaquePointer?
    var leaf: OpaquePointer?
    var others: OpaquePointer?
    guard PKCS12_parse(archive.pointer, password, &key, &leaf, &others) == 1 else { return nil }
    defer {
      EVP_PKEY_free(key)
      X509_free(leaf)
      for index in 0..<max(OPENSSL_sk_num(others), 0) {
        X509_free(OPENSSL_sk_value(others, index).map { OpaquePointer($0) })
      }
      OPENSSL_sk_free(others)
    }
    guard let key, let leaf else {
      let missing = key == nil ? "a private key" : "the certificate of its private key"
      throw CryptographyError(
        .malformed, "The PKCS#12 archive lacks \(missing); export both together.")
    }
    // Through their DER forms, so that nothing hangs on the archive's library context.
    EVP_PKEY_up_ref(key)
    guard let ownKey = KeyHandle(privateDER: try KeyHandle(owning: key).privateDER()) else {
      throw .engine("read the archive's private key")
    }
    var chain: [Certificate] = []
    for index in 0..<max(OPENSSL_sk_num(others), 0) {
      guard let item = OPENSSL_sk_value(others, index) else { continue }
      chain.append(try copy(OpaquePointer(item)))
    }
    return try CertificateIdentity(
      certificate: try copy(leaf), chain: chain, privateKey: PrivateKey(handle: ownKey))
  }

  private static func copy(_ certificate: OpaquePointer) throws(CryptographyError) -> Certificate {
    try Certificate(
      der: try DEROutput.bytes("export a certificate") { i2d_X509(certificate, $0) })
  }

  private static func openWithLegacyCiphers(
    _ archive: [UInt8], password: String
  ) throws(CryptographyError) -> CertificateIdentity {
    guard let context = OSSL_LIB_CTX_new() else { throw .engine("open a PKCS#12 archive") }
    defer { OSSL_LIB_CTX_free(context) }
    let legacy = OSSL_PROVIDER_load(context, "legacy")
    let standard = OSSL_PROVIDER_load(context, "default")
    defer {
      if let legacy { OSSL_PROVIDER_unload(legacy) }
      if let standard { OSSL_PROVIDER_unload(standard) }
    }
    if legacy != nil, standard != nil,
      let handle = ArchiveHandle(der: archive, context: context),
      let identity = try parse(handle, password)
    {
      return identity
    }
    let hint =
      legacy == nil
      ? "this system lacks OpenSSL's legacy provider (Debian: openssl-provider-legacy)"
      : OpenSSLErrors.drain()
    throw CryptographyError(
      .unsupported,
      """
      The PKCS#12 archive uses a cipher that is not to be had: \(hint). Export it again with a \
      present-day tool, for example: openssl pkcs12 -legacy -in old.p12 | openssl pkcs12 -export
      """)
  }
}

/// Owns one `PKCS12`.
private final class ArchiveHandle {
  let pointer: OpaquePointer

  /// - Parameter context: The library context whose ciphers open the archive; `nil` is OpenSSL's own.
  init?(der: [UInt8], context: OpaquePointer?) {
    guard let empty = PKCS12_init_ex(NID_pkcs7_data, context, nil) else { return nil }
    var target: OpaquePointer? = empty
    let read = der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      return d2i_PKCS12(&target, &cursor, bytes.count)
    }
    guard let read else {
      // A failed read frees what it was given and says so by clearing the pointer.
      if let target { PKCS12_free(target) }
      return nil
    }
    pointer = read
  }

  deinit { PKCS12_free(pointer) }
}
