/// The first message of a TLS client (RFC 8446, section 4.1.2): the protocols that it offers (RFC
/// 7301), and the server that it wants (RFC 6066, section 3).
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
    switch Message(bytes) {
    case .partial: self = .partial
    case .whole(let hello): self = Self.offersHTTP2(hello) ? .offersHTTP2 : .other
    case .none: self = .other
    }
  }

  /// The name of the server in a complete message; `nil` if the client has given none.
  package static func serverName(_ bytes: UnsafeRawBufferPointer) -> String? {
    guard case .whole(let hello) = Message(bytes), let content = extensionContent(0, of: hello)
    else { return nil }
    var list = Fields(rest: content)
    guard let names = list.take(lengthBytes: 2) else { return nil }
    list = Fields(rest: names)
    // The only type of a name is 0, a host's.
    guard list.rest.first == 0, list.skip(1), let name = list.take(lengthBytes: 2) else {
      return nil
    }
    return String(validating: name, as: UTF8.self)
  }

  private static func offersHTTP2(_ hello: ArraySlice<UInt8>) -> Bool {
    guard let content = extensionContent(16, of: hello) else { return false }
    var list = Fields(rest: content)
    guard let names = list.take(lengthBytes: 2) else { return false }
    list = Fields(rest: names)
    while let name = list.take(lengthBytes: 1) {
      if name.elementsEqual([0x68, 0x32]) { return true }
    }
    return false
  }

  /// The content of an extension.
  ///
  /// - Parameter type: Below 256.
  private static func extensionContent(
    _ type: UInt8, of hello: ArraySlice<UInt8>
  ) -> ArraySlice<UInt8>? {
    var fields = Fields(rest: hello)
    guard fields.skip(34), fields.take(lengthBytes: 1) != nil,  // version and random, session
      fields.take(lengthBytes: 2) != nil, fields.take(lengthBytes: 1) != nil,  // ciphers …
      let extensions = fields.take(lengthBytes: 2)
    else { return nil }
    fields = Fields(rest: extensions)
    while let high = fields.rest.first {
      let isWanted = high == 0 && fields.rest.dropFirst().first == type
      guard fields.skip(2), let content = fields.take(lengthBytes: 2) else { return nil }
      if isWanted { return content }
    }
    return nil
  }

  /// The message in the records of TLS.
  private enum Message {
    case partial
    case whole(ArraySlice<UInt8>)
    /// Not TLS, or longer than `maxSize`.
    case none

    init(_ bytes: UnsafeRawBufferPointer) {
      var message: [UInt8] = []
      var record = 0
      // A record has a type (22, handshake), a version and a length; a message may span several.
      while true {
        guard bytes.count >= record + 5 else {
          self = bytes.count > record && bytes[record] != 22 ? .none : .partial
          return
        }
        let length = Int(bytes[record + 3]) << 8 | Int(bytes[record + 4])
        guard bytes[record] == 22, bytes[record + 1] == 3, length > 0, length <= 16 * 1024 else {
          self = .none
          return
        }
        let part = bytes[(record + 5)...].prefix(length)
        message += part
        // The message: type 1, client_hello, and a length of three bytes.
        guard message.first ?? 1 == 1 else {
          self = .none
          return
        }
        if message.count >= 4 {
          let size = Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3])
          guard size <= maxSize else {
            self = .none
            return
          }
          if message.count >= 4 + size {
            self = .whole(message[4..<(4 + size)])
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
