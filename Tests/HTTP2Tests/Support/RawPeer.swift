import COpenSSL
import Foundation
import Synchronization

@testable import HTTP2

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Milliseconds after which a peer that should have answered counts as hanging.
private let hangLimit: Int32 = 120_000

/// A client that writes bytes of its own making, over plain TCP or TLS. Blocking, with a limit.
final class RawClient {
  private let descriptor: Int32
  private var context: TLSContext?
  private var channel: TLSChannel?
  /// Whether the limit of time ended a wait.
  private(set) var timedOut = false

  /// The connection's TLS, once there is some.
  var ssl: OpaquePointer? { channel?.ssl }

  init?(port: UInt16) {
    guard case .success(let found) = Socket.addresses(of: "127.0.0.1", port: port, passive: false),
      let address = found.first, let descriptor = Socket.make(family: address.family)
    else { return nil }
    self.descriptor = descriptor
    let code = Socket.connect(descriptor, to: address)
    guard code == 0 || code == EINPROGRESS, wait(POLLOUT), Socket.pendingError(descriptor) == 0
    else { return nil }
  }

  deinit {
    channel = nil
    Socket.close(descriptor)
  }

  /// Shakes hands offering one protocol; returns the alert number that refused it, 0 when it went
  /// well, -1 when it failed otherwise.
  ///
  /// - Parameter version: The highest of TLS to offer; nil for all.
  func startTLS(
    offering name: String?, anchors: [UInt8], atMost version: Int32? = nil
  ) throws -> Int32 {
    let context = try TLSContext.client(extraAnchorsPEM: anchors, certificatePEM: nil, keyPEM: nil)
    // Our clients refuse to renegotiate, and an attacker does not: SSL_OP_NO_RENEGOTIATION.
    SSL_CTX_clear_options(context.handle, 1 << 30)
    if let version { belfry_ssl_ctx_set_maximum(context.handle, version) }
    let offer = name.map { [UInt8($0.utf8.count)] + Array($0.utf8) } ?? []
    SSL_CTX_set_alpn_protos(context.handle, offer, UInt32(offer.count))
    guard let channel = TLSChannel(context, descriptor: descriptor),
      channel.expect(serverName: "localhost")
    else { return -1 }
    (self.context, self.channel) = (context, channel)
    return finishHandshake()
  }

  /// Goes on with the handshake, also with one begun again; the result is that of `startTLS`.
  func finishHandshake() -> Int32 {
    guard let channel else { return -1 }
    while true {
      let result = channel.handshake()
      if result > 0 { return 0 }
      if result < 0 { return channel.failure?.alert ?? -1 }
      guard wait(channel.wantsWrite ? POLLOUT : POLLIN) else { return -1 }
    }
  }

  /// Writes everything, unless the server has closed or takes nothing for the limit.
  func send(_ bytes: [UInt8]) {
    var left = bytes[...]
    while !left.isEmpty {
      let count = left.withUnsafeBytes { bytes -> Int in
        guard let base = bytes.baseAddress else { return -1 }
        if let channel { return channel.write(base, count: bytes.count) }
        let count = write(descriptor, base, bytes.count)
        return count < 0 && errno == EAGAIN ? 0 : count == 0 ? -1 : count
      }
      guard count > 0 || count == 0 && wait(POLLOUT) else { return }
      left = left.dropFirst(count)
    }
  }

  /// Reads what comes next; nil when the server has closed, or sends nothing for the limit.
  func readSome() -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
      let count =
        channel?.read(into: &buffer, count: buffer.count) ?? read(descriptor, &buffer, buffer.count)
      if count > 0 { return Array(buffer[..<count]) }
      let isWaiting = channel == nil ? count < 0 && errno == EAGAIN : count == 0
      guard isWaiting else { return nil }
      guard wait(POLLIN) else {
        timedOut = true
        return nil
      }
    }
  }

  /// Reads until the server closes; nil when it does not within the limit.
  func readToEnd() -> [UInt8]? {
    var all: [UInt8] = []
    while let bytes = readSome() { all += bytes }
    return timedOut ? nil : all
  }

  private func wait(_ events: some BinaryInteger) -> Bool {
    var descriptors = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    return poll(&descriptors, 1, hangLimit) == 1
  }
}

/// A TLS server for one client that says what it is told to, whatever it hears.
final class RawServer: Sendable {
  let port: UInt16
  /// The TLS handshake is done.
  let isSecure = Signal()
  private let listener: Int32

  /// - Parameters:
  ///   - speaksH2: Whether ALPN answers `h2`; without, it answers nothing.
  ///   - bytes: Sent after the handshake.
  init(_ identity: TestKeys.Identity, speaksH2: Bool, sending bytes: [UInt8]) throws {
    let address = try Socket.addresses(of: "127.0.0.1", port: 0, passive: true).get()[0]
    guard let listener = Socket.listen(at: address) else { throw CocoaError(.featureUnsupported) }
    self.listener = listener
    port = Socket.port(of: listener)
    let thread = Thread { [isSecure] in
      Self.serve(listener, identity, speaksH2, bytes, isSecure)
    }
    thread.start()
  }

  private static func serve(
    _ listener: Int32, _ identity: TestKeys.Identity, _ speaksH2: Bool, _ bytes: [UInt8],
    _ isSecure: Signal
  ) {
    blockBrokenPipeSignal()
    defer { Socket.close(listener) }
    guard wait(listener, POLLIN), let (descriptor, _) = Socket.accept(listener),
      let context = try? TLSContext.server(
        certificatePEM: identity.certificatePEM, keyPEM: identity.keyPEM,
        clientCertificates: .ignored, clientAnchorsPEM: [])
    else { return }
    defer { Socket.close(descriptor) }
    if !speaksH2 { SSL_CTX_set_alpn_select_cb(context.handle, { _, _, _, _, _, _ in 3 }, nil) }
    guard let channel = TLSChannel(context, descriptor: descriptor) else { return }
    channel.accept(alert: nil)
    while channel.handshake() == 0 {
      guard wait(descriptor, channel.wantsWrite ? POLLOUT : POLLIN) else { return }
    }
    if !bytes.isEmpty { _ = channel.write(bytes, count: bytes.count) }
    isSecure.set()
    // Until the client has had enough.
    var buffer = [UInt8](repeating: 0, count: 4096)
    while channel.failure == nil {
      if channel.read(into: &buffer, count: buffer.count) == 0, !wait(descriptor, POLLIN) { return }
    }
  }

  private static func wait(_ descriptor: Int32, _ events: some BinaryInteger) -> Bool {
    var descriptors = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    return poll(&descriptors, 1, hangLimit) == 1
  }
}
