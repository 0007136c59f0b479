import Foundation
import Testing

@testable import NotificationHubs

@Suite("Documents of sends, feedback and the extensions")
struct SendDocumentTests {
  static let report = NotificationOutcomeReport(
    success: 1, failure: 1,
    results: [
      .init(
        platform: "apple", pnsHandle: "0A1B", registrationID: "1-2-3",
        outcome: NotificationOutcome.success.sentence),
      .init(
        platform: "gcm", pnsHandle: "<x>", registrationID: "4-5-6", outcome: "&", status: 400,
        reason: "<Bad>"),
    ])

  @Test("a test send's report prints as documented and reads back")
  func outcomeReport() throws {
    #expect(
      Self.report.xml.contains(
        "<Success>1</Success><Failure>1</Failure><Results><RegistrationResult>"
          + "<ApplicationPlatform>apple</ApplicationPlatform><PnsHandle>0A1B</PnsHandle>"
          + "<RegistrationId>1-2-3</RegistrationId><Outcome>The Notification was successfully sent "
          + "to the Push Notification System</Outcome></RegistrationResult>"))
    #expect(try NotificationOutcomeReport(xml: Data(Self.report.xml.utf8)) == Self.report)
    #expect(
      Self.report.xml.contains(
        "<Outcome>&amp;</Outcome><Status>400</Status><Reason>&lt;Bad&gt;</Reason></RegistrationResult>"
      ))
    let plain = Self.report.withoutExtensions.xml
    #expect(plain.contains("<Outcome>&amp;</Outcome></RegistrationResult>"), "\(plain)")
    let empty = NotificationOutcomeReport(success: 0, failure: 0)
    #expect(empty.xml.hasSuffix("<Failure>0</Failure><Results/></NotificationOutcome>"))
    #expect(try NotificationOutcomeReport(xml: Data(empty.xml.utf8)) == empty)
    for outcome in NotificationOutcome.allCases { #expect(!outcome.sentence.isEmpty) }
  }

  static let feedback = [
    PnsFeedback(
      feedbackTime: Date(timeIntervalSince1970: 1_893_837_600),
      notificationSystemError: "ExpiredChannel", platform: "apple", pnsHandle: "0A<1B",
      registrationID: "1-2-3", installationID: "i", notificationID: "n", newPnsHandle: "new"),
    PnsFeedback(
      feedbackTime: Date(timeIntervalSince1970: 0), notificationSystemError: "BadChannel",
      platform: "gcm", pnsHandle: "x"),
  ]

  @Test("a file of feedback documents reads, whatever encoding each declares")
  func feedbackFile() throws {
    let declaration = "<?xml version=\"1.0\" encoding=\"utf-16\"?>"
    let file = Self.feedback.map { declaration + $0.xml }.joined(separator: "\r\n") + "\n"
    #expect(try PnsFeedback.parse(Data(file.utf8)) == Self.feedback)
    #expect(try PnsFeedback.parse(Data(Self.feedback.map(\.xml).joined().utf8)) == Self.feedback)
    #expect(try PnsFeedback.parse(Data()) == [])
    #expect(throws: WireFormatError.self) { try PnsFeedback.parse(Data(file.utf8.dropLast(20))) }
  }

  static let payload = #"{"aps":{"alert":"hi"}}"#
  static let expected = DirectBatch(
    notification: Array(payload.utf8), contentType: "application/json",
    devices: [.handle("h1"), .handle("h2")])

  static func body(_ lineEnd: String = "\r\n", quote: String = "") -> String {
    [
      "ignored preamble", "--b 1", "Content-Type: application/json",
      "Content-Disposition: inline; name=\(quote)notification\(quote)", "", payload, "--b 1 ",
      "content-disposition:inline;name=\(quote)devices\(quote)", "", #"["h1", 'h2']"#, "--b 1--",
      "epilogue",
    ].joined(separator: lineEnd)
  }

  @Test(
    "a batch is read in every form that clients send",
    arguments: [
      (body(), "multipart/mixed; boundary=\"b 1\""),
      (body("\n"), "Multipart/Mixed;charset=utf-8; Boundary = 'b 1'"),
      (body(quote: "\""), "multipart/form-data; boundary=b 1"),
    ])
  func batches(body: String, contentType: String) throws {
    #expect(try DirectBatch(body.utf8, contentType: contentType) == Self.expected)
  }

  @Test("parts may come in the other order, a batch of a client reads back")
  func ownBatch() throws {
    var batch = Self.expected
    batch.devices.append(.subscription(endpoint: "https://a", p256dh: "p", auth: "a"))
    let own = batch.encoded(boundary: "x")
    #expect(try DirectBatch(own, contentType: "multipart/mixed; boundary=x") == batch)
    let parts = String(decoding: own, as: UTF8.self).split(
      separator: "--x\r\n", omittingEmptySubsequences: true)
    let swapped =
      "--x\r\n" + parts[1].replacing("--x--\r\n", with: "") + "--x\r\n" + parts[0] + "--x--"
    #expect(try DirectBatch(swapped.utf8, contentType: "multipart/mixed;boundary=x") == batch)
  }

  @Test("a payload may hold blank lines, and what only looks like a boundary")
  func trickyPayload() throws {
    var batch = Self.expected
    batch.notification = Array("\r\n--xy\r\n --x\n\n".utf8)
    let own = batch.encoded(boundary: "x")
    #expect(try DirectBatch(own, contentType: "multipart/mixed; boundary=x") == batch)
  }

  static func batch(_ devices: String) -> String {
    body().replacing(#"["h1", 'h2']"#, with: devices)
  }

  @Test(
    "other batches are refused",
    arguments: [
      "", "--b 1--", body().replacing("name=devices", with: "name=other"),
      body().replacing("name=notification", with: ""), body().replacing("--b 1--", with: ""),
      batch("[]"), batch("{}"), batch("[1]"), batch("[\"\"]"), batch("[{}]"), batch("[null]"),
      batch("[" + Array(repeating: "'h'", count: 1001).joined(separator: ",") + "]"),
      String(repeating: "--b 1\r\nA: b\r\n\r\nc\r\n", count: 40) + body(),
      "--b 1\r\nno header\r\n\r\n--b 1--",
    ])
  func faultyBatches(body: String) {
    #expect(throws: WireFormatError.self) {
      try DirectBatch(body.utf8, contentType: "multipart/mixed; boundary=\"b 1\"")
    }
  }

  @Test("a batch without its end is refused with that reason, one of another form with its own")
  func unclosedBatch() throws {
    func fault(_ body: String) -> String {
      do throws(WireFormatError) {
        _ = try DirectBatch(body.utf8, contentType: "multipart/mixed; boundary=\"b 1\"")
        return "taken"
      } catch {
        return error.message
      }
    }
    for end in ["", "--b 1", "--b 1-"] {
      let cut = Self.body().replacing("--b 1--", with: end)
      #expect(fault(cut).contains("does not end with '--b 1--'; it may have been cut off"))
    }
    #expect(fault("nothing").contains("no multipart body with the boundary 'b 1'"))
  }

  @Test(
    "a batch without a boundary is refused",
    arguments: [
      "", "application/json", "multipart/mixed", "multipart/mixed; boundary=",
      "application/json; boundary=b 1",
    ])
  func noBoundary(contentType: String) {
    #expect(throws: WireFormatError.self) {
      try DirectBatch(Self.body().utf8, contentType: contentType)
    }
  }

  @Test("a thousand devices are taken, and more where the hub allows it")
  func maximum() throws {
    var batch = Self.expected
    batch.devices = (0..<1000).map { .handle("h\($0)") }
    let type = "multipart/mixed; boundary=x"
    #expect(try DirectBatch(batch.encoded(boundary: "x"), contentType: type) == batch)
    batch.devices.append(.handle("last"))
    let larger = batch.encoded(boundary: "x")
    #expect(try DirectBatch(larger, contentType: type, maximum: 5000) == batch)
  }

  @Test("counts, erasures and lists print as fixed and read back")
  func extensions() throws {
    let count = AudienceCount(
      total: 5,
      counts: [
        .init(platform: .apns, template: nil, devices: 3),
        .init(platform: .fcmv1, template: "a \"b\"", devices: 2),
      ])
    #expect(
      String(decoding: count.json, as: UTF8.self)
        == #"{"total":5,"counts":[{"platform":"apns","template":null,"devices":3},{"platform":"fcmv1","template":"a \"b\"","devices":2}]}"#
    )
    #expect(try AudienceCount(json: count.json) == count)
    // A device with a template is there as a native one, too.
    var both = count
    both.counts.append(.init(platform: .apns, template: "main", devices: 2))
    #expect(both.devices == 5)
    var estimate = count
    estimate.isEstimate = true
    #expect(String(decoding: estimate.json, as: UTF8.self).hasSuffix(#"],"estimate":true}"#))
    #expect(try AudienceCount(json: estimate.json) == estimate)
    let erasure = UserErasure(
      installations: 1, schedules: 2, notifications: 3, deviceRecords: 4, tags: 5, templates: 6)
    #expect(
      String(decoding: erasure.json, as: UTF8.self)
        == #"{"installations":1,"schedules":2,"notifications":3,"deviceRecords":4,"#
        + #""tags":5,"templates":6}"#)
    #expect(try UserErasure(json: erasure.json) == erasure)
    let older = #"{"installations":1,"schedules":2,"notifications":3,"deviceRecords":4}"#
    #expect(try UserErasure(json: older.utf8).tags == 0)
    let phone = NotificationHubClientTests.phone
    for page in [[], [phone], [phone, phone]] {
      #expect(try InstallationList.decode(InstallationList.json(page)) == page)
    }
    for text in ["", "{}", "[]", #"{"total":-1,"counts":[]}"#, #"{"installations":{}}"#] {
      #expect(throws: WireFormatError.self) { try AudienceCount(json: text.utf8) }
      #expect(throws: WireFormatError.self) { try UserErasure(json: text.utf8) }
      #expect(throws: WireFormatError.self) { try InstallationList.decode(text.utf8) }
    }
  }
}
