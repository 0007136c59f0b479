import CMicrohttpd  // brings the members of sockaddr_storage along
import HTTP2

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A bound, listening, non-blocking socket, to be closed by the caller.
package struct ListeningSocket {
  package let number: Int32
  /// The numeric address that it is bound to.
  package let host: String
  package let port: UInt16

  package init(host: String, port: UInt16) throws(HTTPListenerError) {
    guard var address = SocketAddress(host: host, port: port) else {
      throw .badAddress(host: host)
    }
    let number = socket(address.family, streamSocketType, 0)
    guard number >= 0 else { throw Self.error(host, port) }
    // A restart must not wait for old connections in TIME_WAIT.
    var one: Int32 = 1
    setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    guard address.withPointer({ bind(number, $0, $1) }) == 0, listen(number, SOMAXCONN) == 0,
      fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK) == 0,
      fcntl(number, F_SETFD, FD_CLOEXEC) == 0,
      let actual = SocketAddress(boundTo: number)
    else {
      let error = Self.error(host, port)
      close(number)
      throw error
    }
    self.number = number
    self.host = actual.host
    self.port = actual.port
  }

  private static func error(_ host: String, _ port: UInt16) -> HTTPListenerError {
    switch errno {
    case EADDRINUSE: .addressInUse(host: host, port: port)
    case EACCES, EPERM: .permissionDenied(host: host, port: port)
    case EADDRNOTAVAIL, EAFNOSUPPORT: .badAddress(host: host)
    default: .system(host: host, port: port, reason: String(cString: strerror(errno)))
    }
  }
}

/// An IPv4 or IPv6 address with its port.
struct SocketAddress {
  private var storage = sockaddr_storage()
  private var length: socklen_t

  /// - Parameter host: A numeric address, or `localhost` for 127.0.0.1.
  init?(host: String, port: UInt16) {
    var v4 = sockaddr_in()
    var v6 = sockaddr_in6()
    if inet_pton(AF_INET, host == "localhost" ? "127.0.0.1" : host, &v4.sin_addr) == 1 {
      v4.sin_family = sa_family_t(AF_INET)
      v4.sin_port = port.bigEndian
      length = socklen_t(MemoryLayout<sockaddr_in>.size)
      withUnsafeBytes(of: v4) { bytes in
        withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: bytes) }
      }
    } else if inet_pton(AF_INET6, host, &v6.sin6_addr) == 1 {
      v6.sin6_family = sa_family_t(AF_INET6)
      v6.sin6_port = port.bigEndian
      length = socklen_t(MemoryLayout<sockaddr_in6>.size)
      withUnsafeBytes(of: v6) { bytes in
        withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: bytes) }
      }
    } else {
      return nil
    }
  }

  /// The address that a socket is bound to.
  init?(boundTo socket: Int32) {
    length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(socket, $0, &length)
      }
    }
    guard result == 0 else { return nil }
  }

  /// A copy of an IPv4 or IPv6 address.
  init?(_ address: UnsafePointer<sockaddr>) {
    let size: Int
    switch Int32(address.pointee.sa_family) {
    case AF_INET: size = MemoryLayout<sockaddr_in>.size
    case AF_INET6: size = MemoryLayout<sockaddr_in6>.size
    default: return nil
    }
    length = socklen_t(size)
    withUnsafeMutableBytes(of: &storage) {
      $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: size))
    }
  }

  var family: Int32 { Int32(storage.ss_family) }

  var port: UInt16 {
    withUnsafeBytes(of: storage) { bytes in
      family == AF_INET6
        ? bytes.loadUnaligned(as: sockaddr_in6.self).sin6_port.bigEndian
        : bytes.loadUnaligned(as: sockaddr_in.self).sin_port.bigEndian
    }
  }

  /// The address in network byte order: 4 or 16 bytes.
  var addressBytes: [UInt8] {
    withUnsafeBytes(of: storage) { bytes in
      if family == AF_INET6 {
        return withUnsafeBytes(of: bytes.loadUnaligned(as: sockaddr_in6.self).sin6_addr) {
          Array($0)
        }
      }
      return withUnsafeBytes(of: bytes.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
    }
  }

  /// The numeric address without port.
  var host: String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let done = withUnsafeBytes(of: storage) { bytes in
      if family == AF_INET6 {
        var address = bytes.loadUnaligned(as: sockaddr_in6.self).sin6_addr
        return inet_ntop(AF_INET6, &address, &text, socklen_t(text.count)) != nil
      }
      var address = bytes.loadUnaligned(as: sockaddr_in.self).sin_addr
      return inet_ntop(AF_INET, &address, &text, socklen_t(text.count)) != nil
    }
    return done ? text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) } : ""
  }

  mutating func withPointer<Result>(
    _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    withUnsafePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
    }
  }
}
