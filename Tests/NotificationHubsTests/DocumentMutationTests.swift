import Foundation
import Testing
import Wire

@testable import NotificationHubs

/// As ``MutationTests``, for the documents of registrations, hubs, jobs and batches.
@Suite("Damaged documents")
struct DocumentMutationTests {
  static let now = Date(timeIntervalSince1970: 0)

  @Test("registrations")
  func registrations() throws {
    let seeds = RegistrationTests.all.map(\.requestXML) + RegistrationTests.lenient
    try MutationTests.mutants(of: seeds) { bytes in
      guard let read = try? Registration.decodeRequest(bytes) else { return }
      let printed = read.entryXML(address: AtomAddress("https://h/r"), form: .read, now: Self.now)
      let again = try Registration.decode(printed.utf8)
      #expect(again.channel == read.channel && again.tags == read.tags)
      #expect(again.pushVariables == read.pushVariables)
    }
  }

  @Test("feeds, reports and feedback")
  func feeds() {
    let seeds = [
      Registration.feedXML(
        RegistrationTests.all, address: AtomAddress("https://h/r?$top=1"), next: "t", now: Self.now),
      SendDocumentTests.report.xml, SendDocumentTests.feedback.map(\.xml).joined(),
    ]
    MutationTests.mutants(of: seeds, count: 1_500) { bytes in
      _ = try? Registration.decodeFeed(bytes)
      _ = try? NotificationOutcomeReport(xml: Data(bytes))
      _ = try? PnsFeedback.parse(Data(bytes))
    }
  }

  @Test("hubs and jobs")
  func management() throws {
    let seeds = [ManagementDocumentTests.full.requestXML, ManagementDocumentTests.done.requestXML]
    try MutationTests.mutants(of: seeds) { bytes in
      if let hub = try? HubDescription.decodeRequest(bytes, name: "h") {
        let again = try HubDescription.decodeRequest(hub.requestXML.utf8, name: "h")
        #expect(again.credentials.keys == hub.credentials.keys)
      }
      if let job = try? NotificationHubJob.decodeRequest(bytes) {
        #expect(try NotificationHubJob.decodeRequest(job.requestXML.utf8).kind == job.kind)
      }
    }
  }

  @Test("filters, etags, tokens, durations and addresses")
  func texts() {
    let seeds = [
      "ChannelUri eq 'u-1-c-2'", "BaiduChannelId eq c-2' and BaiduUserId eq 'u-1'",
      "Endpoint+eq+'https%3A%2F%2Fa'+and+P256DH+eq+'p'+and+Auth+eq+'a'", "W/\"12\"",
      "P1Y2M3DT4H5M6.789S", "MzEobik7Mg%253D%253D", "https://h:1/a/b/?c=d&$top=2&x",
    ]
    MutationTests.mutants(of: seeds, count: 8_000) { bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      if let filter = try? RegistrationFilter(parsing: text) {
        #expect((1...10).contains(filter.handles.count))
        _ = filter.matches(platform: .baidu, channel: .handle(text))
      }
      _ = try? ETagCondition(ifMatch: text)
      if case .seconds(let seconds)? = WireDuration.parse(text) { _ = WireDuration.text(seconds) }
      if let position = ContinuationToken.decode(text) {
        #expect(ContinuationToken.decode(ContinuationToken.encode(position)) == position)
      }
      let address = AtomAddress(text)
      _ = [address.next(token: text), address.root(text).text, address.appending(text).text]
      _ = [address.replacingLast(with: text).text, PushChannel.handle(text).baiduIDs?.userID]
      _ = text.isAbsoluteURI
    }
  }

  @Test("batches and the extensions' JSON")
  func batches() {
    let json = [
      #"{"total":5,"counts":[{"platform":"apns","template":null,"devices":3}]}"#,
      #"{"installations":1,"schedules":2,"notifications":3,"deviceRecords":4}"#,
    ]
    MutationTests.mutants(of: [SendDocumentTests.body()] + json) { bytes in
      _ = try? DirectBatch(bytes, contentType: "multipart/mixed; boundary=\"b 1\"")
      _ = try? AudienceCount(json: bytes)
      _ = try? UserErasure(json: bytes)
      _ = try? InstallationList.decode(bytes)
      _ = MultipartBody.boundary(String(decoding: bytes, as: UTF8.self))
    }
  }

  @Test("deep nesting, entities and huge attributes are refused or read, never fatal")
  func hostileXML() {
    let deep = String(repeating: "<a>", count: 100_000)
    #expect(XMLNode.parse(deep.utf8) == nil)
    let bomb =
      "<!DOCTYPE l [<!ENTITY a \"x\"><!ENTITY b \"&a;&a;\">]><entry><content>&b;</content></entry>"
    #expect(throws: WireFormatError.self) { try Registration.decodeRequest(bomb.utf8) }
    let external = "<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><x/>"
    #expect(XMLNode.parse(external.utf8) == nil)
    let wide = "<a " + (0..<10_000).map { "a\($0)='&#65;'" }.joined(separator: " ") + "/>"
    #expect(XMLNode.parse(wide.utf8)?.attributes.count == 10_000)
    #expect(XMLNode.parse("<a b='&bad;'/>".utf8) == nil)
    #expect(XMLNode.parse("<a b='x".utf8) == nil)
  }
}
