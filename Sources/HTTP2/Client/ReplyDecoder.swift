import CNghttp2

/// Reads the header blocks of replies (HPACK, RFC 7541). Our SETTINGS leave the peer no dynamic
/// table, so that each block is read by itself: in most of them only the status is looked at.
/// For one thread.
final class ReplyDecoder {
  /// The name of a reply header that a caller wants.
  struct WantedHeader {
    let name: [UInt8]
    fileprivate let index: Int

    init(_ name: String) {
      self.name = Array(name.utf8)
      index = StaticTable.index(ofName: self.name)
    }

    /// Whether a name of so many bytes in Huffman code, 5 to 8 bits for each character of a name, can
    /// be this one.
    fileprivate func mayHaveCodedLength(_ count: Int) -> Bool {
      (name.count * 5 / 8...name.count).contains(count)
    }
  }

  enum Failure: Error {
    /// The block is no HPACK, or uses a table: the connection cannot go on.
    case compression
    /// The fields are no reply.
    case malformed
    /// The fields have more bytes than the limit.
    case tooLarge
  }

  /// Owned; nghttp2's decoder for the blocks that are read whole.
  private let inflater: OpaquePointer

  init?() {
    var inflater: OpaquePointer?
    guard nghttp2_hd_inflate_new(&inflater) == 0, let inflater else { return nil }
    self.inflater = inflater
    nghttp2_hd_inflate_change_table_size(inflater, 0)
    // It would insist on the announcement of the new size, which a peer without a table may leave out.
    let announcement: [UInt8] = [0x20]
    guard (try? announcement.withUnsafeBufferPointer { try inflate($0) { _, _ in } }) != nil else {
      return nil
    }
  }

  deinit { nghttp2_hd_inflate_del(inflater) }

  struct Reply {
    fileprivate(set) var status: UInt16 = 0
    /// Number of bytes of all names and values, or more.
    fileprivate(set) var size = 0
    /// The length that the body has, if the reply says so.
    fileprivate(set) var contentLength: Int?
    /// The wanted headers, by their index.
    fileprivate(set) var headers: [(index: Int, value: [UInt8])] = []
  }

  /// - Parameter limit: Of the bytes of all names and values.
  func read(
    _ block: UnsafeBufferPointer<UInt8>, wanted: [WantedHeader], limit: Int
  ) throws(Failure) -> Reply {
    if let reply = Self.plainReply(block, wanted: wanted, limit: limit) { return reply }
    var (reply, isMalformed, hasFields) = (Reply(), false, false)
    try inflate(block) { name, value in
      reply.size += name.count + value.count
      if name.first == UInt8(ascii: ":") {
        guard reply.status == 0, !hasFields, name.elementsEqual(":status".utf8),
          let number = Self.number(value)
        else {
          isMalformed = true
          return
        }
        reply.status = number
      } else {
        hasFields = true
        if Self.isOfConnection(name) { isMalformed = true }
        if name.elementsEqual("content-length".utf8) {
          reply.contentLength = Int(String(decoding: value, as: UTF8.self))
        }
        if reply.size <= limit, Self.isField(name, value),
          let index = wanted.firstIndex(where: { $0.name.elementsEqual(name) })
        {
          reply.headers.append((index, Array(value)))
        }
      }
    }
    guard reply.size <= limit else { throw .tooLarge }
    guard !isMalformed, reply.status != 0 else { throw .malformed }
    return reply
  }

  /// Whether it may be a field (RFC 9113, section 8.2.1); one that may not is passed over, because
  /// the reply tells what became of a push.
  private static func isField(
    _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    name.allSatisfy { $0 > 0x20 && $0 < 0x7F }
      && value.allSatisfy { $0 != 0 && $0 != 0x0A && $0 != 0x0D }
  }

  /// Whether a reply with a field of this name is malformed (sections 8.2.1 and 8.2.2).
  private static func isOfConnection(_ name: some Collection<UInt8>) -> Bool {
    name.contains { (0x41...0x5A).contains($0) }
      || connectionFields.contains { name.elementsEqual($0.utf8) }
  }

  private static let connectionFields = [
    "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
  ]

  private static func number(_ text: UnsafeBufferPointer<UInt8>) -> UInt16? {
    guard text.count == 3, text.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return text.reduce(0) { $0 * 10 + UInt16($1 - 0x30) }
  }

  private func inflate(
    _ block: UnsafeBufferPointer<UInt8>,
    _ field: (UnsafeBufferPointer<UInt8>, UnsafeBufferPointer<UInt8>) -> Void
  ) throws(Failure) {
    var (at, left) = (block.baseAddress, block.count)
    while true {
      var pair = nghttp2_nv()
      var flags: Int32 = 0
      let used = nghttp2_hd_inflate_hd2(inflater, &pair, &flags, at, left, 1)
      guard used >= 0 else { throw .compression }
      at = at.map { $0 + used }
      left -= used
      if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
        field(
          UnsafeBufferPointer(start: pair.name, count: pair.namelen),
          UnsafeBufferPointer(start: pair.value, count: pair.valuelen))
      }
      if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 { break }
      if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) == 0, left == 0 { throw .compression }
    }
    nghttp2_hd_inflate_end_headers(inflater)
  }

  // MARK: Blocks of which only the status matters

  /// A success that has its status in one byte, as all that are common, and no wanted header; `nil`
  /// for any other reply, and for one that is not as it must be. Its other fields are not looked at.
  private static func plainReply(
    _ block: UnsafeBufferPointer<UInt8>, wanted: [WantedHeader], limit: Int
  ) -> Reply? {
    var reader = Reader(rest: block[...])
    var reply = Reply()
    // A byte of Huffman code is less than two characters, a reference to the table less than 64.
    reply.size = block.count * 2
    while let first = reader.rest.first {
      if first & 0x80 != 0 {
        guard let index = reader.integer(prefix: 7), index <= StaticTable.count else { return nil }
        reply.size += 64
        if (8...14).contains(index) {
          guard reply.status == 0 else { return nil }
          reply.status = statuses[index - 8]
        } else if index < 8 || reply.status == 0 || index == transferEncoding
          || wanted.contains(where: { $0.index == index })
        {
          return nil
        }
      } else if first & 0xE0 == 0x20 {
        guard reader.integer(prefix: 5) == 0, reply.status == 0 else { return nil }
      } else {
        guard let index = reader.integer(prefix: first & 0x40 != 0 ? 6 : 4) else { return nil }
        reply.size += 64
        if index == 0 {
          guard let name = reader.string(), let first = name.bytes.first,
            name.isCoded
              ? !codedColons.contains(first)
              : first != UInt8(ascii: ":") && !isOfConnection(name.bytes)
          else { return nil }
          let isWanted = wanted.contains { header in
            name.isCoded
              ? header.mayHaveCodedLength(name.bytes.count) : header.name.elementsEqual(name.bytes)
          }
          if isWanted { return nil }
        } else if index <= 14 || index > StaticTable.count || index == transferEncoding
          || wanted.contains(where: { $0.index == index })
        {
          return nil
        }
        guard reply.status != 0, reader.string() != nil else { return nil }
      }
    }
    // The length of an error's body has to be read.
    return (200..<300).contains(reply.status) && reply.size <= limit ? reply : nil
  }

  private static let transferEncoding = 57
  /// The first byte of a name that begins with a colon, in Huffman code: 1011100 and another bit.
  private static let codedColons: ClosedRange<UInt8> = 0xB8...0xB9

  /// The values of `:status` in the static table, from index 8.
  private static let statuses: [UInt16] = [200, 204, 206, 304, 400, 404, 500]

  private struct Reader {
    var rest: Slice<UnsafeBufferPointer<UInt8>>

    /// An integer with a prefix of so many bits; `nil` if it is cut short or beyond all reason.
    mutating func integer(prefix: Int) -> Int? {
      let most = UInt8(truncatingIfNeeded: 1 << prefix - 1)
      guard let first = rest.popFirst() else { return nil }
      guard first & most == most else { return Int(first & most) }
      var (value, shift) = (Int(most), 0)
      while let byte = rest.popFirst(), shift <= 21 {
        value += Int(byte & 0x7F) << shift
        if byte & 0x80 == 0 { return value }
        shift += 7
      }
      return nil
    }

    mutating func string() -> (bytes: Slice<UnsafeBufferPointer<UInt8>>, isCoded: Bool)? {
      guard let first = rest.first, let count = integer(prefix: 7), count <= rest.count else {
        return nil
      }
      defer { rest = rest.dropFirst(count) }
      return (rest.prefix(count), first & 0x80 != 0)
    }
  }
}
