/// Writes the header blocks of requests (HPACK, RFC 7541), for pushes: fields that many requests
/// share enter the peer's dynamic table once and are one byte from then on; all others are literals.
/// Nothing is Huffman coded.
struct FieldEncoder {
  /// The block of a field set without its `:path`, as long as it is valid.
  struct CachedBlock {
    fileprivate(set) var bytes: [UInt8] = []
    /// `:path` belongs before this index.
    fileprivate var pathIndex = 0
    fileprivate var version = -1

    /// Calls `body` with what belongs before `:path`, and after it.
    @inline(__always)
    func withParts(_ body: (UnsafeBufferPointer<UInt8>, UnsafeBufferPointer<UInt8>) -> Void) {
      bytes.withUnsafeBufferPointer { bytes in
        body(
          UnsafeBufferPointer(rebasing: bytes[..<pathIndex]),
          UnsafeBufferPointer(rebasing: bytes[pathIndex...]))
      }
    }
  }

  struct Field {
    let name: [UInt8]
    let value: [UInt8]
    let indexing: HTTP2Field.Indexing
  }

  private struct Entry {
    let name: [UInt8]
    let value: [UInt8]
    var size: Int { FieldEncoder.size(name.count, value.count) }
  }

  /// Our copy of the peer's table, the newest entry first.
  private var entries: [Entry] = []
  private var used = 0
  private var limit = FieldEncoder.defaultLimit
  /// The lowest limit since the last block, which the next one announces, and then the limit itself
  /// (section 4.2).
  private var announced: Int?
  /// Changes with the table.
  private var version = 0

  /// SETTINGS_HEADER_TABLE_SIZE until the peer says otherwise; we never use more.
  private static let defaultLimit = 4096

  private static func size(_ name: Int, _ value: Int) -> Int { name + value + 32 }

  /// Obeys the peer's SETTINGS_HEADER_TABLE_SIZE.
  mutating func setLimit(_ peerLimit: Int) {
    let new = min(peerLimit, Self.defaultLimit)
    guard new != limit || announced != nil else { return }
    announced = min(announced ?? new, new)
    limit = new
    evict(to: new)
  }

  /// Starts a block.
  mutating func begin(_ out: inout [UInt8]) {
    guard let lowest = announced else { return }
    announced = nil
    if lowest < limit { Self.append(lowest, prefix: 5, first: 0x20, to: &out) }
    Self.append(limit, prefix: 5, first: 0x20, to: &out)
  }

  /// Whether a block can be sent again as it is.
  func isValid(_ block: CachedBlock) -> Bool { block.version == version && announced == nil }

  /// Encodes a field set, with the pseudo-header fields ahead of it and `:path` left out.
  ///
  /// A block that has put fields into the table is right once; made again, it refers to them.
  mutating func block(_ fields: [Field]) -> CachedBlock {
    var block = CachedBlock()
    let before = version
    for (index, field) in fields.enumerated() {
      if index == Self.pseudoFields { block.pathIndex = block.bytes.count }
      append(field.name, field.value, field.indexing, to: &block.bytes)
    }
    if fields.count <= Self.pseudoFields { block.pathIndex = block.bytes.count }
    if version == before { block.version = version }
    return block
  }

  /// `:method`, `:scheme`, `:authority`.
  static let pseudoFields = 3

  private mutating func append(
    _ name: [UInt8], _ value: [UInt8], _ indexing: HTTP2Field.Indexing, to out: inout [UInt8]
  ) {
    if let index = StaticTable.index(name, value) {
      return Self.append(index, prefix: 7, first: 0x80, to: &out)
    }
    let size = Self.size(name.count, value.count)
    guard indexing == .allowed, size <= limit else {
      out += Self.literalName(name, indexing)
      return Self.append(value, to: &out)
    }
    if let index = entries.firstIndex(where: { $0.name == name && $0.value == value }) {
      return Self.append(StaticTable.count + 1 + index, prefix: 7, first: 0x80, to: &out)
    }
    Self.append(StaticTable.index(ofName: name), prefix: 6, first: 0x40, to: &out)
    if StaticTable.index(ofName: name) == 0 { Self.append(name, to: &out) }
    Self.append(value, to: &out)
    evict(to: limit - size)
    entries.insert(Entry(name: name, value: value), at: 0)
    used += size
    version += 1
  }

  private mutating func evict(to most: Int) {
    while used > most, let oldest = entries.popLast() {
      used -= oldest.size
      version += 1
    }
  }

  // MARK: Representations

  /// The beginning of a field that is not kept, up to its value; if it never may be, nobody on the way
  /// keeps it either (sections 6.2.2 and 6.2.3).
  static func literalName(_ name: [UInt8], _ indexing: HTTP2Field.Indexing) -> [UInt8] {
    var out: [UInt8] = []
    let index = StaticTable.index(ofName: name)
    append(index, prefix: 4, first: indexing == .never ? 0x10 : 0, to: &out)
    if index == 0 { append(name, to: &out) }
    return out
  }

  /// The most bytes that the length of a string takes.
  static let mostLengthBytes = 6

  /// Writes a string without Huffman coding.
  /// - Returns: The number of bytes written.
  @inline(__always)
  static func write(
    _ text: UnsafePointer<UInt8>, _ count: Int, to out: UnsafeMutablePointer<UInt8>
  ) -> Int {
    var at = 1
    if count < 127 {
      out[0] = UInt8(truncatingIfNeeded: count)
    } else {
      out[0] = 127
      var rest = count - 127
      while rest >= 128 {
        out[at] = UInt8(truncatingIfNeeded: rest & 0x7F) | 0x80
        rest >>= 7
        at += 1
      }
      out[at] = UInt8(truncatingIfNeeded: rest)
      at += 1
    }
    (out + at).update(from: text, count: count)
    return at + count
  }

  /// A string without Huffman coding (section 5.2).
  private static func append(_ text: some Collection<UInt8>, to out: inout [UInt8]) {
    append(text.count, prefix: 7, first: 0, to: &out)
    out.append(contentsOf: text)
  }

  /// An integer with a prefix of so many bits (section 5.1).
  private static func append(_ value: Int, prefix: Int, first: UInt8, to out: inout [UInt8]) {
    let most = 1 << prefix - 1
    guard value >= most else { return out.append(first | UInt8(value)) }
    out.append(first | UInt8(most))
    var rest = value - most
    while rest >= 128 {
      out.append(UInt8(rest & 0x7F) | 0x80)
      rest >>= 7
    }
    out.append(UInt8(rest))
  }
}

/// The static table of HPACK (RFC 7541, appendix A).
enum StaticTable {
  static let count = 61

  /// The index of a name; 0 when it has none.
  static func index(ofName name: some Collection<UInt8>) -> Int {
    for (index, known) in names.enumerated()
    where known.count == name.count && known.elementsEqual(name) {
      return index + 1
    }
    return 0
  }

  /// The index of a field of requests with its value.
  static func index(_ name: [UInt8], _ value: [UInt8]) -> Int? {
    fields.first { $0.name.elementsEqual(name) && $0.value.elementsEqual(value) }?.index
  }

  private static let fields: [(name: String.UTF8View, value: String.UTF8View, index: Int)] = [
    (":method".utf8, "GET".utf8, 2), (":method".utf8, "POST".utf8, 3),
    (":scheme".utf8, "http".utf8, 6), (":scheme".utf8, "https".utf8, 7),
    ("accept-encoding".utf8, "gzip, deflate".utf8, 16),
  ]

  private static let names: [[UInt8]] = [
    ":authority", ":method", ":method", ":path", ":path", ":scheme", ":scheme", ":status",
    ":status", ":status", ":status", ":status", ":status", ":status", "accept-charset",
    "accept-encoding", "accept-language", "accept-ranges", "accept",
    "access-control-allow-origin", "age", "allow", "authorization", "cache-control",
    "content-disposition", "content-encoding", "content-language", "content-length",
    "content-location", "content-range", "content-type", "cookie", "date", "etag", "expect",
    "expires", "from", "host", "if-match", "if-modified-since", "if-none-match", "if-range",
    "if-unmodified-since", "last-modified", "link", "location", "max-forwards",
    "proxy-authenticate", "proxy-authorization", "range", "referer", "refresh", "retry-after",
    "server", "set-cookie", "strict-transport-security", "transfer-encoding", "user-agent",
    "vary", "via", "www-authenticate",
  ].map { Array($0.utf8) }
}
