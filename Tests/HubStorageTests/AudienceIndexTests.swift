import Testing

@testable import HubStorage

@Suite("The index of bitmaps")
struct AudienceIndexTests {
  @Test("applies to a bitmap on its way what is committed meanwhile")
  func loadsFollowCommits() {
    let index = AudienceIndex(budget: 1 << 20, writer: 1, commit: 0)
    let load = index.beginLoad(of: 7)
    index.apply(
      [
        TagChange(tag: 7, registration: 5, isMember: true),
        TagChange(tag: 7, registration: 1, isMember: false),
        TagChange(tag: 8, registration: 9, isMember: true),
      ], commit: 1)
    index.finish(load, with: Bitmap([1, 2]))
    #expect(members(of: 7, in: index) == [2, 5])
    index.apply([TagChange(tag: 7, registration: 3, isMember: true)], commit: 2)
    #expect(members(of: 7, in: index) == [2, 3, 5])
  }

  @Test("forgets everything when another process has committed")
  func othersCommits() {
    let index = AudienceIndex(budget: 1 << 20, writer: 1, commit: 0)
    index.finish(index.beginLoad(of: 7), with: Bitmap([1]))
    index.noteCommit(0, by: 2)
    #expect(members(of: 7, in: index) == [1], "an old commit")
    let load = index.beginLoad(of: 8)
    index.noteCommit(1, by: 2)
    #expect(members(of: 7, in: index) == nil)
    index.finish(load, with: Bitmap([1]))
    #expect(members(of: 8, in: index) == nil, "a load that began before")
    index.finish(index.beginLoad(of: 7), with: Bitmap([1]))
    index.apply([], commit: 3)
    #expect(members(of: 7, in: index) == nil, "a gap between own commits")
  }

  @Test("lets go of what was not used for the longest time")
  func budgetIsKept() {
    let index = AudienceIndex(budget: 1_500, writer: 1, commit: 0)
    for tag in Int64(1)...8 {
      index.finish(index.beginLoad(of: tag), with: Bitmap([1]))
      _ = members(of: 1, in: index)
    }
    #expect(members(of: 1, in: index) == [1])
    #expect((Int64(1)...8).filter { members(of: $0, in: index) == nil }.contains(2))
  }

  @Test("counts what bitmaps take, not how often they have changed")
  func bytesAreCounted() {
    let index = AudienceIndex(budget: 4_000, writer: 1, commit: 0)
    for tag in Int64(1)...8 { index.finish(index.beginLoad(of: tag), with: Bitmap([1])) }
    for commit in Int64(1)...5_000 {
      index.apply(
        [TagChange(tag: 1, registration: UInt32(commit % 7), isMember: commit % 2 == 0)],
        commit: commit)
      if commit % 500 == 0 { _ = members(of: 1, in: index) }
    }
    #expect((Int64(1)...8).filter { members(of: $0, in: index) == nil } == [])
    // What they take does count.
    index.apply(
      (0..<4_000).map { TagChange(tag: 1, registration: $0 * 65_536, isMember: true) },
      commit: 5_001)
    _ = members(of: 1, in: index)
    #expect(members(of: 2, in: index) == nil)
  }

  private func members(of tag: Int64, in index: AudienceIndex) -> [UInt32]? {
    var missing: [Int64] = []
    return index.withBitmaps(of: [tag], missing: &missing) { $0[tag]?.first(100) ?? [] }
  }
}

@Suite("An audience")
struct AudienceTests {
  @Test(
    "pages through numbers far apart as a plain list would",
    arguments: [1, 3, 50, 1_000, 65_536, 1_000_000])
  func membersAcrossStretches(step: Int) {
    let everyone = (0..<40).flatMap { run in
      (0..<50).map { UInt32(run * step * 100 + $0 * step / 10 + $0 + 1) }
    }
    let all = Array(Set(everyone)).sorted()
    let tagged = all.filter { $0 % 3 == 0 }
    let bitmaps: [Int64: Bitmap] = [1: Bitmap(all), 2: Bitmap(tagged)]
    for (term, wanted) in [
      (nil, all), (AudienceTerm.tag(2), tagged), (.not(.tag(2)), all.filter { $0 % 3 != 0 }),
    ] {
      let audience = Audience(kind: 1, term: term, expired: nil)
      #expect(audience.count(bitmaps) == wanted.count)
      var found: [UInt32] = []
      while case let page = audience.members(from: (found.last ?? 0) + 1, limit: 97, bitmaps),
        !page.isEmpty
      {
        found += page
      }
      #expect(found == wanted)
    }
  }

  @Test("reaches the highest number there can be")
  func highestNumber() {
    let audience = Audience(kind: 1, term: nil, expired: nil)
    let bitmaps: [Int64: Bitmap] = [1: Bitmap([1, .max])]
    #expect(audience.members(from: 0, limit: 10, bitmaps) == [1, .max])
    #expect(audience.members(from: .max, limit: 10, bitmaps) == [.max])
  }

  @Test("leaves out who has expired")
  func expiredAreOut() {
    let audience = Audience(kind: 1, term: .not(.nobody), expired: Bitmap([2]))
    let bitmaps: [Int64: Bitmap] = [1: Bitmap([1, 2, 3])]
    #expect(audience.members(from: 0, limit: 10, bitmaps) == [1, 3])
    #expect(audience.count(bitmaps) == 2)
    #expect(!audience.contains(2, bitmaps))
  }
}

@Suite("Stored values")
struct ByteCodingTests {
  @Test("that are cut short or damaged are refused, not trusted")
  func damageIsRefused() throws {
    var writer = ByteWriter()
    writer.write(["key": "value", "other": "text"])
    for length in 0..<writer.bytes.count {
      var reader = ByteReader(Array(writer.bytes[..<length]))
      #expect(throws: (any Error).self) { try reader.words() }
    }
    var endless = ByteReader([UInt8](repeating: 0xff, count: 20))
    #expect(throws: (any Error).self) { try endless.number() }
    var deep = ByteReader([UInt8](repeating: 1, count: 100_000))
    #expect(throws: (any Error).self) { try deep.expression() }
  }

  @Test("numbers come back", arguments: [0, 1, 127, 128, 300, -1, .min, .max] as [Int64])
  func numbersRoundTrip(number: Int64) throws {
    var writer = ByteWriter()
    writer.write(number)
    var reader = ByteReader(writer.bytes)
    #expect(try reader.signedNumber() == number)
  }
}
