import CNghttp2
import Testing

@testable import HTTP2

/// Header blocks against nghttp2's HPACK, which is the other side of each test.
@Suite("Header blocks of a client")
struct FieldCodingTests {
  private typealias Field = FieldEncoder.Field

  @Test("nghttp2 reads what is written, whatever the table does", arguments: 0..<50)
  func encoder(seed: UInt64) throws {
    var draw = Draw(state: seed)
    var inflater: OpaquePointer?
    #expect(nghttp2_hd_inflate_new(&inflater) == 0)
    defer { nghttp2_hd_inflate_del(inflater) }
    var encoder = FieldEncoder()
    let sets = (0..<5).map { _ in Self.fieldSet(&draw) }
    var known: [FieldEncoder.CachedBlock?] = Array(repeating: nil, count: sets.count)
    for _ in 0..<200 {
      if draw.below(8) == 0 {
        // Several changes ahead of one block are all announced.
        for _ in 0...draw.below(2) {
          let limit = [0, 33, 100, 300, 4096, 100_000][draw.below(6)]
          encoder.setLimit(limit)
          nghttp2_hd_inflate_change_table_size(inflater, limit)
        }
      }
      let index = draw.below(sets.count)
      var block: [UInt8] = []
      if let cached = known[index], encoder.isValid(cached) {
        block += cached.bytes
      } else {
        encoder.begin(&block)
        let new = encoder.block(sets[index])
        block += new.bytes
        known[index] = new
      }
      let fields = try #require(Self.inflate(inflater, block), "seed \(seed)")
      #expect(fields == sets[index].map { [$0.name, $0.value] })
    }
  }

  @Test("a block made again is a byte for each field that is kept")
  func repeats() {
    var encoder = FieldEncoder()
    let fields = [
      (":method", "POST"), (":scheme", "https"), (":authority", "api.push.apple.com"),
      ("apns-topic", "com.example.app"), ("apns-priority", "10"),
    ].map { Field(name: Array($0.0.utf8), value: Array($0.1.utf8), indexing: .allowed) }
    #expect(!encoder.isValid(encoder.block(fields)))
    let again = encoder.block(fields)
    #expect(encoder.isValid(again) && again.bytes.count == 5)
    // Another block changes the table, and with it the indices.
    _ = encoder.block([
      Field(name: Array("x".utf8), value: Array("y".utf8), indexing: .allowed)
    ])
    #expect(!encoder.isValid(again))
  }

  @Test("a field that is never kept is marked so, and leaves nothing in the table")
  func neverIndexed() {
    var encoder = FieldEncoder()
    let secret = Field(
      name: Array("authorization".utf8), value: Array("bearer x".utf8), indexing: .never)
    let block = encoder.block([secret])
    #expect(encoder.isValid(block))
    #expect(block.bytes.starts(with: [0x1F, 8]))
  }

  @Test("a status and the wanted headers are found in what nghttp2 writes", arguments: 0..<50)
  func decoder(seed: UInt64) throws {
    var draw = Draw(state: seed)
    var deflater: OpaquePointer?
    #expect(nghttp2_hd_deflate_new(&deflater, 0) == 0)
    defer { nghttp2_hd_deflate_del(deflater) }
    let decoder = try #require(ReplyDecoder())
    let wanted = ["retry-after", "apns-unique-id"]
    for _ in 0..<100 {
      let status = [200, 200, 400, 404, 410, 429, 500, 503][draw.below(8)]
      var fields = [(":status", "\(status)")]
      for name in ["apns-id", "retry-after", "apns-unique-id", "content-type", "retry-bfter"]
      where draw.below(2) == 0 {
        fields.append(
          (name, String(repeating: ["0", "Z", "é"][draw.below(3)], count: draw.below(40))))
      }
      let block = try #require(Self.deflate(deflater, fields))
      let reply = try block.withUnsafeBufferPointer { block in
        try decoder.read(block, wanted: wanted.map(ReplyDecoder.WantedHeader.init), limit: 16_384)
      }
      #expect(Int(reply.status) == status)
      let found = reply.headers.reduce(into: [:]) {
        $0[$1.index] = String(decoding: $1.value, as: UTF8.self)
      }
      for (index, name) in wanted.enumerated() {
        #expect(found[index] == fields.first { $0.0 == name }?.1, "seed \(seed), \(name)")
      }
    }
  }

  @Test("no bytes make the decoder trap, and none make it see two things", arguments: 0..<20)
  func garbage(seed: UInt64) throws {
    var draw = Draw(state: seed)
    let decoder = try #require(ReplyDecoder())
    for _ in 0..<2_000 {
      let heads: [[UInt8]] = [[0x88], [0x20, 0x88], [0x8D], [0x48, 3, 0x34, 0x31, 0x30], []]
      let block = heads[draw.below(5)] + (0..<draw.below(20)).map { _ in UInt8(draw.below(256)) }
      func status(_ wanted: [String]) -> UInt16? {
        block.withUnsafeBufferPointer { block in
          try? decoder.read(
            block, wanted: wanted.map(ReplyDecoder.WantedHeader.init), limit: 16_384
          ).status
        }
      }
      let quick = status([])
      // With so many names wanted each literal is looked at by nghttp2.
      let whole = status((1...60).map { String(repeating: "x", count: $0) } + ["retry-after"])
      if let whole { #expect(quick == whole) }
    }
  }

  private static func fieldSet(_ draw: inout Draw) -> [Field] {
    let pseudo = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost")]
    let names = ["authorization", "apns-topic", "apns-push-type", "content-type", "ttl", "x"]
    let others = (0..<draw.below(8)).map { _ in
      (names[draw.below(6)], String(repeating: "v", count: draw.below(200)))
    }
    return (pseudo + others).map {
      Field(
        name: Array($0.0.utf8), value: Array($0.1.utf8),
        indexing: draw.below(4) == 0 ? .never : .allowed)
    }
  }

  private static func inflate(_ inflater: OpaquePointer?, _ block: [UInt8]) -> [[[UInt8]]]? {
    var fields: [[[UInt8]]] = []
    var rest = block[...]
    while true {
      var pair = nghttp2_nv()
      var flags: Int32 = 0
      let used = Array(rest).withUnsafeBufferPointer {
        nghttp2_hd_inflate_hd2(inflater, &pair, &flags, $0.baseAddress, $0.count, 1)
      }
      guard used >= 0 else { return nil }
      rest = rest.dropFirst(used)
      if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
        fields.append([
          Array(UnsafeBufferPointer(start: pair.name, count: pair.namelen)),
          Array(UnsafeBufferPointer(start: pair.value, count: pair.valuelen)),
        ])
      } else if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
        nghttp2_hd_inflate_end_headers(inflater)
        return fields
      } else if rest.isEmpty {
        return nil
      }
    }
  }

  private static func deflate(
    _ deflater: OpaquePointer?, _ fields: [(String, String)]
  ) -> [UInt8]? {
    let bytes = fields.map { (Array($0.0.utf8), Array($0.1.utf8)) }
    let flat = bytes.flatMap { $0 + $1 }
    return flat.withUnsafeBufferPointer { flat -> [UInt8]? in
      let base = UnsafeMutablePointer(mutating: flat.baseAddress)
      var at = 0
      let pairs = bytes.map { name, value -> nghttp2_nv in
        defer { at += name.count + value.count }
        return nghttp2_nv(
          name: base.map { $0 + at }, value: base.map { $0 + at + name.count },
          namelen: name.count, valuelen: value.count, flags: 0)
      }
      var out = [UInt8](repeating: 0, count: 4096)
      let count = nghttp2_hd_deflate_hd(deflater, &out, out.count, pairs, pairs.count)
      return count >= 0 ? Array(out.prefix(count)) : nil
    }
  }
}

/// Numbers that look random, the same for each run.
private struct Draw {
  var state: UInt64

  mutating func below(_ end: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var bits = state
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((bits ^ (bits >> 31)) % UInt64(end))
  }
}
