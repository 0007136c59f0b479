#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// `SOCK_STREAM` as the `Int32` that `addrinfo` wants; an enum on Glibc.
package let streamSocketType: Int32 = {
  #if canImport(Glibc)
    Int32(SOCK_STREAM.rawValue)
  #else
    SOCK_STREAM
  #endif
}()

/// The system's message for an error number.
func systemMessage(_ code: Int32) -> String { String(cString: strerror(code)) }

/// The few socket calls of both sides, without ownership: descriptors belong to the sessions.
package enum Socket {
  /// Addresses to connect or bind to, copied out of `getaddrinfo`.
  package struct Address {
    package var family: Int32
    /// A `sockaddr` of that family.
    package var bytes: [UInt8]

    /// The address itself in network order: 4 or 16 bytes, at the same places on all systems.
    package var host: [UInt8] { Array(family == AF_INET ? bytes[4..<8] : bytes[8..<24]) }

    /// Both families keep the port, big-endian, behind two bytes of family.
    package mutating func setPort(_ port: UInt16) {
      bytes[2] = UInt8(port >> 8)
      bytes[3] = UInt8(port & 0xFF)
    }
  }

  /// Resolves a name, without a cache.
  package static func addresses(
    of host: String, port: UInt16, passive: Bool
  ) -> Result<[Address], LookupFailure> {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = streamSocketType
    hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0)
    var list: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, String(port), &hints, &list)
    guard code == 0 else { return .failure(LookupFailure(String(cString: gai_strerror(code)))) }
    defer { freeaddrinfo(list) }
    var found: [Address] = []
    var next = list
    while let entry = next {
      if let address = entry.pointee.ai_addr {
        let bytes = UnsafeRawBufferPointer(start: address, count: Int(entry.pointee.ai_addrlen))
        found.append(Address(family: entry.pointee.ai_family, bytes: Array(bytes)))
      }
      next = entry.pointee.ai_next
    }
    return found.isEmpty ? .failure(LookupFailure("no address")) : .success(found)
  }

  package struct LookupFailure: Error {
    package let reason: String
    init(_ reason: String) { self.reason = reason }
  }

  /// Makes a descriptor non-blocking, and closed in child processes.
  static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  /// A prepared TCP socket, or nil with `errno` set.
  package static func make(family: Int32) -> Int32? {
    let descriptor = socket(family, streamSocketType, 0)
    guard descriptor >= 0 else { return nil }
    prepare(descriptor)
    return descriptor
  }

  package static func close(_ descriptor: Int32) {
    #if canImport(Darwin)
      _ = Darwin.close(descriptor)
    #elseif canImport(Glibc)
      _ = Glibc.close(descriptor)
    #else
      _ = Musl.close(descriptor)
    #endif
  }

  /// Sends FIN.
  package static func shutdownWriting(_ descriptor: Int32) {
    shutdown(descriptor, Int32(SHUT_WR))
  }

  package static func setNoDelay(_ descriptor: Int32) {
    var on: Int32 = 1
    setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Makes the coming `close` a TCP reset.
  package static func setReset(_ descriptor: Int32) {
    var value = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
  }

  /// Starts to connect; 0, `EINPROGRESS` or another error number.
  package static func connect(_ descriptor: Int32, to address: Address) -> Int32 {
    let result = address.bytes.withUnsafeBytes {
      #if canImport(Darwin)
        Darwin.connect(
          descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
      #elseif canImport(Glibc)
        Glibc.connect(
          descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
      #else
        Musl.connect(
          descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
      #endif
    }
    return result == 0 ? 0 : errno
  }

  /// The result of a connect that was in progress: 0 or an error number.
  package static func pendingError(_ descriptor: Int32) -> Int32 {
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno
  }

  /// Binds and listens. Returns the descriptor, or nil with `errno` set.
  static func listen(at address: Address) -> Int32? {
    guard let descriptor = make(family: address.family) else { return nil }
    var on: Int32 = 1
    setsockopt(
      descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    let bound = address.bytes.withUnsafeBytes {
      bind(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
    }
    #if canImport(Darwin)
      let isListening = bound == 0 && Darwin.listen(descriptor, 1024) == 0
    #elseif canImport(Glibc)
      let isListening = bound == 0 && Glibc.listen(descriptor, 1024) == 0
    #else
      let isListening = bound == 0 && Musl.listen(descriptor, 1024) == 0
    #endif
    guard isListening else {
      let code = errno
      close(descriptor)
      errno = code
      return nil
    }
    return descriptor
  }

  /// Accepts a waiting connection and returns its peer; nil with `errno` set when there is none.
  package static func accept(_ listener: Int32) -> (descriptor: Int32, peer: String)? {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        #if canImport(Darwin)
          let descriptor = Darwin.accept(listener, address, &size)
        #elseif canImport(Glibc)
          let descriptor = Glibc.accept(listener, address, &size)
        #else
          let descriptor = Musl.accept(listener, address, &size)
        #endif
        guard descriptor >= 0 else { return nil }
        prepare(descriptor)
        setNoDelay(descriptor)
        return (descriptor, numericHost(address, size))
      }
    }
  }

  /// The port a listening socket is bound to.
  static func port(of descriptor: Int32) -> UInt16 {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      let result = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, $0, &size)
      }
      guard result == 0 else { return 0 }
      // The port is at the same offset in both families.
      return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        UInt16(bigEndian: $0.pointee.sin_port)
      }
    }
  }

  private static func numericHost(_ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { buffer in
      guard let base = buffer.baseAddress,
        getnameinfo(address, size, base, socklen_t(NI_MAXHOST), nil, 0, NI_NUMERICHOST) == 0
      else { return "" }
      return String(cString: base)
    }
  }
}
