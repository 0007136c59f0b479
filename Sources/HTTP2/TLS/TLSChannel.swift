import COpenSSL

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Numbers of TLS alerts (RFC 8446, section 6).
enum TLSAlert {
  static let noApplicationProtocol: Int32 = 120

  /// Whether an alert concerns the receiver's certificate: bad, unsupported, revoked, expired,
  /// unknown, unknown_ca, access_denied, certificate_required.
  static func isAboutCertificate(_ alert: Int32) -> Bool {
    (42...46).contains(alert) || alert == 48 || alert == 49 || alert == 116
  }
}

/// Owns an `SSL` over a socket that it does not own. For one thread.
final class TLSChannel {
  /// The reason that reading, writing or the handshake cannot continue.
  struct Failure {
    /// The alert that the peer sent, if it did.
    var alert: Int32?
    /// Whether the peer closed properly or vanished, rather than violated TLS.
    var isEndOfStream = false
    /// Whether the peer's certificate did not verify.
    var isUntrusted = false
    var reason: String
  }

  let ssl: OpaquePointer
  /// Number of KeyUpdates of the peer; OpenSSL holds the pointer as long as the channel lives.
  private let keyUpdates: UnsafeMutablePointer<Int>
  /// Set when a call returned -1.
  private(set) var failure: Failure?
  /// Whether the last call that returned 0 waits for room to write.
  private(set) var wantsWrite = false

  init?(_ context: TLSContext, descriptor: Int32) {
    guard let ssl = SSL_new(context.handle) else { return nil }
    guard SSL_set_fd(ssl, descriptor) == 1 else {
      SSL_free(ssl)
      return nil
    }
    self.ssl = ssl
    keyUpdates = .allocate(capacity: 1)
    keyUpdates.initialize(to: 0)
  }

  deinit {
    SSL_free(ssl)
    keyUpdates.deallocate()
  }

  /// Makes this the client's side: the peer's certificate must be for `name`, a host or an address.
  func expect(serverName name: String) -> Bool {
    belfry_ssl_set_message_callback(ssl, countKeyUpdates, keyUpdates)
    let parameters = SSL_get0_param(ssl)
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1 {
      SSL_set_connect_state(ssl)
      return true
    }
    ERR_clear_error()
    SSL_set_connect_state(ssl)
    return SSL_set1_host(ssl, name) == 1 && belfry_ssl_set_server_name(ssl, name) == 1
  }

  /// Makes this the server's side; a fault may choose an alert in reply to the ClientHello.
  func accept(alert: UInt8?) {
    SSL_set_accept_state(ssl)
    belfry_ssl_set_message_callback(ssl, countKeyUpdates, keyUpdates)
    if let alert { SSL_set_ex_data(ssl, 0, UnsafeMutableRawPointer(bitPattern: Int(alert))) }
  }

  /// 1 when done, 0 to wait for the socket, -1 when it failed.
  func handshake() -> Int {
    ERR_clear_error()
    return outcome(Int(SSL_do_handshake(ssl)))
  }

  /// Bytes read, 0 to wait for the socket, -1 at the end or when it failed.
  func read(into buffer: UnsafeMutableRawPointer, count: Int) -> Int {
    ERR_clear_error()
    return outcome(Int(SSL_read(ssl, buffer, Int32(clamping: count))))
  }

  /// Bytes written, 0 to wait for the socket, -1 when it failed.
  func write(_ buffer: UnsafeRawPointer, count: Int) -> Int {
    ERR_clear_error()
    return outcome(Int(SSL_write(ssl, buffer, Int32(clamping: count))))
  }

  /// Sends close_notify if the socket has room for it.
  func closeNotify() {
    guard failure == nil else { return }
    ERR_clear_error()
    SSL_shutdown(ssl)
    ERR_clear_error()
  }

  /// Whether the handshake negotiated `h2`.
  var speaksH2: Bool {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &length)
    guard let name, length == 2 else { return false }
    return name[0] == 0x68 && name[1] == 0x32
  }

  /// The peer's leaf certificate and whether its chain verified.
  var peerCertificate: HTTP2PeerCertificate? {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
    defer { X509_free(certificate) }
    var der: UnsafeMutablePointer<UInt8>?
    let length = i2d_X509(certificate, &der)
    guard length > 0, let der else { return nil }
    defer { belfry_free(der) }
    return HTTP2PeerCertificate(
      der: Array(UnsafeBufferPointer(start: der, count: Int(length))),
      isVerified: SSL_get_verify_result(ssl) == Int(X509_V_OK))
  }

  private func outcome(_ result: Int) -> Int {
    if result > 0 { return result }
    let systemError = errno
    switch SSL_get_error(ssl, Int32(result)) {
    case SSL_ERROR_WANT_READ:
      wantsWrite = false
      return 0
    case SSL_ERROR_WANT_WRITE:
      wantsWrite = true
      return 0
    case SSL_ERROR_ZERO_RETURN:
      failure = Failure(isEndOfStream: true, reason: "the peer closed the connection")
    case SSL_ERROR_SYSCALL:
      let reason = systemError == 0 ? "the peer closed the connection" : systemMessage(systemError)
      failure = Failure(isEndOfStream: true, reason: reason)
    default:
      failure = protocolFailure()
    }
    ERR_clear_error()
    return -1
  }

  private func protocolFailure() -> Failure {
    let code = ERR_get_error()
    let reason = belfry_err_reason(code)
    if reason == SSL_R_UNEXPECTED_EOF_WHILE_READING {
      return Failure(isEndOfStream: true, reason: "the peer closed the connection")
    }
    let verification = SSL_get_verify_result(ssl)
    if reason == SSL_R_CERTIFICATE_VERIFY_FAILED, verification != Int(X509_V_OK) {
      let text = String(cString: X509_verify_cert_error_string(verification))
      return Failure(isUntrusted: true, reason: "its certificate is not accepted: \(text)")
    }
    let text = ERR_reason_error_string(code).map { String(cString: $0) } ?? "TLS failed"
    // OpenSSL reports a received alert as 1000 plus its number.
    let alert = reason > 1000 && reason < 1256 ? reason - 1000 : nil
    return Failure(alert: alert, reason: text)
  }
}

/// A TLS 1.3 client may change its key as often as it likes, and OpenSSL continues reading until
/// some data arrives. After this many nothing more is read from the socket. (Keys last for
/// terabytes.)
private let maxKeyUpdates = 100

private let countKeyUpdates:
  @convention(c) (
    Int32, Int32, Int32, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?
  ) -> Void = { isWriting, _, type, message, length, ssl, counter in
    guard isWriting == 0, type == SSL3_RT_HANDSHAKE, length > 0, let message, let counter,
      Int32(message.load(as: UInt8.self)) == SSL3_MT_KEY_UPDATE
    else { return }
    let count = counter.assumingMemoryBound(to: Int.self)
    count.pointee += 1
    if count.pointee > maxKeyUpdates { shutdown(SSL_get_fd(ssl), Int32(SHUT_RD)) }
  }
