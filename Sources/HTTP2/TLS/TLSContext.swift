import COpenSSL

/// The reason that TLS material cannot be used; names the piece.
struct TLSMaterialError: Error {
  let reason: String
  init(_ reason: String) { self.reason = reason }
}

/// Owns an `SSL_CTX`, which all handshakes of one connection configuration or server share.
///
/// `@unchecked Sendable`: complete before it is shared; OpenSSL counts its references atomically.
final class TLSContext: @unchecked Sendable {
  let handle: OpaquePointer

  private init(_ handle: OpaquePointer) { self.handle = handle }

  deinit { SSL_CTX_free(handle) }

  /// ALPN's wire form of `h2`: a length and the name (RFC 7301, section 3.1).
  private static let h2: [UInt8] = [2, 0x68, 0x32]

  /// A context for a client that requires `h2`, TLS 1.2 and a peer certificate that verifies.
  static func client(
    extraAnchorsPEM: [UInt8], certificatePEM: [UInt8]?, keyPEM: [UInt8]?
  ) throws(TLSMaterialError) -> TLSContext {
    let context = try make(TLS_client_method(), readAhead: 128 * 1024)
    belfry_ssl_ctx_refuse_renegotiation(context.handle)
    SSL_CTX_set_default_verify_paths(context.handle)
    try context.trust(extraAnchorsPEM)
    SSL_CTX_set_verify(context.handle, SSL_VERIFY_PEER, nil)
    SSL_CTX_set_alpn_protos(context.handle, h2, UInt32(h2.count))
    if let certificatePEM {
      guard let keyPEM else { throw TLSMaterialError("the client certificate has no key") }
      try context.use(certificatePEM: certificatePEM, keyPEM: keyPEM)
    }
    return context
  }

  /// A context for a server that speaks `h2` only. Sets up no verification that could fail the
  /// handshake unless client certificates are required.
  ///
  /// - Parameter requiresALPN: Refuse a client that offers no protocols at all.
  static func server(
    certificatePEM: [UInt8], keyPEM: [UInt8],
    clientCertificates: HTTP2ServerConfiguration.ClientCertificates, clientAnchorsPEM: [UInt8],
    requiresALPN: Bool = true
  ) throws(TLSMaterialError) -> TLSContext {
    let context = try make(TLS_server_method(), readAhead: 32 * 1024)
    belfry_ssl_ctx_refuse_renegotiation(context.handle)
    try context.use(certificatePEM: certificatePEM, keyPEM: keyPEM)
    try context.trust(clientAnchorsPEM)
    switch clientCertificates {
    case .ignored: SSL_CTX_set_verify(context.handle, SSL_VERIFY_NONE, nil)
    case .optional: SSL_CTX_set_verify(context.handle, SSL_VERIFY_PEER) { _, _ in 1 }
    case .required:
      let mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
      SSL_CTX_set_verify(context.handle, mode) { _, _ in 1 }
    }
    SSL_CTX_set_alpn_select_cb(context.handle, selectH2, nil)
    SSL_CTX_set_client_hello_cb(
      context.handle, requiresALPN ? inspectClientHello : refuseWhenTold, nil)
    return context
  }

  private static func make(
    _ method: OpaquePointer?, readAhead: Int
  ) throws(TLSMaterialError) -> TLSContext {
    guard let handle = SSL_CTX_new(method) else { throw TLSMaterialError("TLS cannot start") }
    let context = TLSContext(handle)
    belfry_ssl_ctx_set_minimum_tls12(handle)
    belfry_ssl_ctx_set_batching(handle, readAhead)
    belfry_ssl_ctx_disable_resumption(handle)
    return context
  }

  /// Adds the certificates of a PEM text to the trusted ones.
  private func trust(_ pem: [UInt8]) throws(TLSMaterialError) {
    guard !pem.isEmpty else { return }
    let certificates = Self.certificates(in: pem)
    defer { for certificate in certificates { X509_free(certificate) } }
    guard !certificates.isEmpty else {
      throw TLSMaterialError("the trust anchors hold no PEM certificate")
    }
    let store = SSL_CTX_get_cert_store(handle)
    for certificate in certificates { X509_STORE_add_cert(store, certificate) }
    ERR_clear_error()  // a certificate that was in the store already is no error
  }

  /// Uses a certificate chain, leaf first, and its key.
  private func use(certificatePEM: [UInt8], keyPEM: [UInt8]) throws(TLSMaterialError) {
    let chain = Self.certificates(in: certificatePEM)
    defer { for certificate in chain { X509_free(certificate) } }
    guard let leaf = chain.first, SSL_CTX_use_certificate(handle, leaf) == 1 else {
      throw TLSMaterialError("the certificate is not a PEM certificate")
    }
    for issuer in chain.dropFirst() { _ = belfry_ssl_ctx_add1_chain_cert(handle, issuer) }
    let key = Self.read(keyPEM) { PEM_read_bio_PrivateKey($0, nil, refusePassword, nil) }
    defer { EVP_PKEY_free(key) }
    guard let key else { throw TLSMaterialError("the private key is not an unencrypted PEM key") }
    guard SSL_CTX_use_PrivateKey(handle, key) == 1, SSL_CTX_check_private_key(handle) == 1 else {
      ERR_clear_error()
      throw TLSMaterialError("the private key does not belong to the certificate")
    }
  }

  private static func certificates(in pem: [UInt8]) -> [OpaquePointer] {
    read(pem) { bio in
      var found: [OpaquePointer] = []
      while let next = PEM_read_bio_X509(bio, nil, refusePassword, nil) { found.append(next) }
      return found
    } ?? []
  }

  private static func read<T>(_ bytes: [UInt8], _ body: (OpaquePointer) -> T?) -> T? {
    bytes.withUnsafeBytes {
      guard let bio = BIO_new_mem_buf($0.baseAddress, Int32(clamping: $0.count)) else { return nil }
      defer {
        BIO_free(bio)
        ERR_clear_error()  // the end of a PEM text is reported as an error
      }
      return body(bio)
    }
  }
}

/// Without this OpenSSL would ask for a password on the terminal.
private let refusePassword:
  @convention(c) (
    UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?
  ) -> Int32 = { _, _, _, _ in -1 }

/// Chooses `h2` or ends the handshake with the alert no_application_protocol.
private let selectH2: SSL_CTX_alpn_select_cb_func = { _, out, outLength, offered, length, _ in
  guard let offered else { return SSL_TLSEXT_ERR_ALERT_FATAL }
  var position = 0
  while position < Int(length) {
    let size = Int(offered[position])
    let name = position + 1
    if size == 2, name + 2 <= Int(length), offered[name] == 0x68, offered[name + 1] == 0x32 {
      out?.pointee = offered + name
      outLength?.pointee = 2
      return SSL_TLSEXT_ERR_OK
    }
    position = name + size
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL
}

/// Ends the handshake with the alert kept as application data of the connection, a fault.
private let refuseWhenTold: SSL_client_hello_cb_fn = { ssl, alert, _ in
  let chosen = Int(bitPattern: SSL_get_ex_data(ssl, 0))
  guard chosen != 0 else { return SSL_CLIENT_HELLO_SUCCESS }
  alert?.pointee = Int32(truncatingIfNeeded: chosen)
  return SSL_CLIENT_HELLO_ERROR
}

/// The same, and ends it with no_application_protocol when the client offers no ALPN at all.
private let inspectClientHello: SSL_client_hello_cb_fn = { ssl, alert, context in
  guard refuseWhenTold(ssl, alert, context) == SSL_CLIENT_HELLO_SUCCESS else {
    return SSL_CLIENT_HELLO_ERROR
  }
  var extensionData: UnsafePointer<UInt8>?
  var extensionLength = 0
  let alpn = UInt32(TLSEXT_TYPE_application_layer_protocol_negotiation)
  guard SSL_client_hello_get0_ext(ssl, alpn, &extensionData, &extensionLength) == 1 else {
    alert?.pointee = TLSAlert.noApplicationProtocol
    return SSL_CLIENT_HELLO_ERROR
  }
  return SSL_CLIENT_HELLO_SUCCESS
}
