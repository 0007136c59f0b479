import Foundation

#if canImport(Glibc)
  import Glibc
  private let stream = Int32(SOCK_STREAM.rawValue)
  private let sending = Int32(MSG_NOSIGNAL)
#elseif canImport(Musl)
  import Musl
  private let stream = SOCK_STREAM
  private let sending = Int32(MSG_NOSIGNAL)
#elseif canImport(Darwin)
  import Darwin
  private let stream = SOCK_STREAM
  private let sending: Int32 = 0
#endif

/// Says that it is a PostgreSQL server of some version, and that it takes writes; it knows no more.
/// - SeeAlso: <https://www.postgresql.org/docs/current/protocol-message-formats.html>
package final class OldPostgres: Sendable {
  private let listener: Int32
  package let port: UInt16

  package init(version: String) throws {
    let listener = socket(AF_INET, stream, 0)
    _ = fcntl(listener, F_SETFD, FD_CLOEXEC)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isUp = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 8) == 0
          && getsockname(listener, $0, &length) == 0
      }
    }
    guard isUp else { throw ProcessFault("no listener: \(String(cString: strerror(errno)))") }
    self.listener = listener
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread {
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        Self.serve(client, version)
        close(client)
      }
    }
  }

  package func stop() {
    // Wakes the thread that accepts.
    _ = shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
  }

  /// The address of a database there.
  package var address: String {
    "postgresql://belfry@127.0.0.1:\(port)/belfry?sslmode=disable&gssencmode=disable"
  }

  private static func serve(_ client: Int32, _ version: String) {
    // The first message of a client has no type byte.
    guard let start = read(client, 4), read(client, Int(number(start)) - 4) != nil else { return }
    write(
      client,
      message("R", [0, 0, 0, 0]) + message("S", text("server_version") + text(version))
        + message("S", text("client_encoding") + text("UTF8")) + message("Z", Array("I".utf8)))
    while let head = read(client, 5), read(client, Int(number(head.dropFirst())) - 4) != nil {
      guard head[0] == UInt8(ascii: "Q") else { return }
      // Whether it is read-only: one column of text, one row.
      let column =
        text("transaction_read_only") + [0, 0, 0, 0, 0, 0] + [0, 0, 0, 25] + [255, 255]
        + [255, 255, 255, 255] + [0, 0]
      write(
        client,
        message("T", [0, 1] + column) + message("D", [0, 1, 0, 0, 0, 3] + Array("off".utf8))
          + message("C", text("SHOW")) + message("Z", Array("I".utf8)))
    }
  }

  private static func message(_ letter: Character, _ body: [UInt8]) -> [UInt8] {
    let length = UInt32(body.count + 4)
    return Array(String(letter).utf8) + withUnsafeBytes(of: length.bigEndian, Array.init) + body
  }

  private static func text(_ text: String) -> [UInt8] { Array(text.utf8) + [0] }

  private static func number(_ bytes: some Sequence<UInt8>) -> UInt32 {
    bytes.reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// - Returns: `nil` when the client has gone, or asks for what cannot be.
  private static func read(_ client: Int32, _ count: Int) -> [UInt8]? {
    guard (0...65_536).contains(count) else { return nil }
    var bytes = [UInt8](repeating: 0, count: count)
    var got = 0
    while got < count {
      let more = bytes.withUnsafeMutableBytes {
        recv(client, $0.baseAddress! + got, count - got, 0)
      }
      guard more > 0 else { return nil }
      got += more
    }
    return bytes
  }

  private static func write(_ client: Int32, _ bytes: [UInt8]) {
    _ = bytes.withUnsafeBytes { send(client, $0.baseAddress, $0.count, sending) }
  }
}
