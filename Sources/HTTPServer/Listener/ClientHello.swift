/// The protocols that the first message of a TLS client offers (RFC 8446, section 4.1.2; RFC 7301).
package enum ClientHello: Equatable {
  /// The message is incomplete.
  case partial
  case offersHTTP2
  /// The client offers other protocols or none, or this is not TLS.
  case other

  /// The maximum size in bytes of a hello that is read; those of current clients have 0.2 to 2 KiB.
  package static let maxSize = 16 * 1024

  /// - Parameter bytes: All bytes received so far on a connection.
  package init(_ bytes: UnsafeRawBufferPointer) {
    var message: [UInt8] = []
    var record = 0
    // A record has a type (22, handshake), a version and a length; a message may span several.
    while true {
      guard bytes.count >= record + 5 else {
        self = bytes.count > record && bytes[record] != 22 ? .other : .partial
        return
      }
      let length = Int(bytes[record + 3]) << 8 | Int(bytes[record + 4])
      guard bytes[record] == 22, bytes[record + 1] == 3, length > 0, length <= 16 * 1024 else {
        self = .other
        return
      }
      let part = bytes[(record + 5)...].prefix(length)
      message += part
      // The message: type 1, client_hello, and a length of three bytes.
      guard message.first ?? 1 == 1 else {
        self = .other
        return
      }
      if message.count >= 4 {
        let size = Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3])
        guard size <= Self.maxSize else {
          self = .other
          return
        }
        if message.count >= 4 + size {
          self = Self.offersHTTP2(message[4..<(4 + size)]) ? .offersHTTP2 : .other
          return
        }
      }
      guard part.count == length else {
        self = .partial
        return
      }
      record += 5 + length
    }
  }

  private static func offersHTTP2(_ hello: ArraySlice<UInt8>) -> Bool {
    var fields = Fields(rest: hello)
    guard fields.skip(34), fields.take(lengthBytes: 1) != nil,  // version and random, session
      fields.take(lengthBytes: 2) != nil, fields.take(lengthBytes: 1) != nil,  // ciphers …
      let extensions = fields.take(lengthBytes: 2)
    else { return false }
    fields = Fields(rest: extensions)
    while let high = fields.rest.first {
      let isALPN = high == 0 && fields.rest.dropFirst().first == 16
      guard fields.skip(2), let content = fields.take(lengthBytes: 2) else { return false }
      guard isALPN else { continue }
      var list = Fields(rest: content)
      guard let names = list.take(lengthBytes: 2) else { return false }
      list = Fields(rest: names)
      while let name = list.take(lengthBytes: 1) {
        if name.elementsEqual([0x68, 0x32]) { return true }
      }
      return false
    }
    return false
  }

  /// A sequence of fields, read from the front.
  private struct Fields {
    var rest: ArraySlice<UInt8>

    mutating func skip(_ count: Int) -> Bool {
      guard rest.count >= count else { return false }
      rest.removeFirst(count)
      return true
    }

    /// Reads the next field, preceded by its length; `nil` if it is incomplete.
    mutating func take(lengthBytes: Int) -> ArraySlice<UInt8>? {
      guard rest.count >= lengthBytes else { return nil }
      let length = rest.prefix(lengthBytes).reduce(0) { $0 << 8 | Int($1) }
      guard rest.count - lengthBytes >= length else { return nil }
      defer { rest.removeFirst(lengthBytes + length) }
      return rest.dropFirst(lengthBytes).prefix(length)
    }
  }
}
