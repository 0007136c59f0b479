import Foundation
import Testing
import Wire

@testable import NotificationHubs

@Suite("XML documents")
struct WireDocumentTests {
  @Test("an error is written as the service writes it")
  func errorWriting() {
    let envelope = ErrorEnvelope(
      code: 404, message: "Installation <not> found", trackingID: "5b9d0000-0000")
    let text = envelope.xml(node: 8, at: Date(timeIntervalSince1970: 1_565_758_699))
    #expect(
      text == "<Error><Code>404</Code><Detail>Installation &lt;not&gt; found.TrackingId:"
        + "5b9d0000-0000_G8,TimeStamp:8/14/2019 4:58:19 AM</Detail></Error>")
    #expect(ErrorEnvelope(xml: Data(text.utf8)) == envelope)
  }

  @Test(
    "both observed forms of an error read",
    arguments: [
      (
        "<Error><Code>401</Code><Detail>InvalidSignature: bad..TrackingId:1a-2b_G1,TimeStamp:8/1/2019 4:58:19 AM</Detail></Error>",
        "InvalidSignature: bad."
      ),
      (
        "<Error xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><Code>401</Code><Detail>InvalidSignature: bad. TrackingId:1a-2b_G1, TimeStamp:8/1/2019 10:26:42 AM +00:00</Detail></Error>",
        "InvalidSignature: bad"
      ),
      ("<Error><Code>401</Code><Detail>.TrackingId:1a-2b_G1,TimeStamp:x</Detail></Error>", ""),
    ])
  func errorReading(text: String, message: String) throws {
    let envelope = try #require(ErrorEnvelope(xml: Data(text.utf8)))
    #expect(envelope == ErrorEnvelope(code: 401, message: message, trackingID: "1a-2b"))
  }

  @Test("an error without a tracking id reads, other documents do not")
  func otherDocuments() {
    let bare = ErrorEnvelope(xml: Data("<Error><Detail>no</Detail></Error>".utf8))
    #expect(bare == ErrorEnvelope(code: 0, message: "no", trackingID: nil))
    for text in ["", "<Error>", "<Other/>", "plain", String(repeating: "<a>", count: 100_000)] {
      #expect(ErrorEnvelope(xml: Data(text.utf8)) == nil)
    }
  }

  static let document =
    #"<NotificationDetails xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><NotificationId>n-1</NotificationId><Location>sb://h/hub1/messages/n-1?api-version=2020-06&amp;x=1</Location><State>Completed</State><EnqueueTime>2030-01-05T10:00:00Z</EnqueueTime><StartTime>2030-01-05T10:00:01.5880000Z</StartTime><EndTime>2030-01-05T10:00:02.5000000Z</EndTime><NotificationBody>{"aps":{"alert":"&lt;hi&gt;"}}</NotificationBody><Tags>red &amp;&amp; blue</Tags><TargetPlatforms>apple,appletemplate</TargetPlatforms><ApnsOutcomeCounts><Outcome><Name>Success</Name><Count>3</Count></Outcome><Outcome><Name>BadChannel</Name><Count>2</Count></Outcome><Outcome><Name>WrongToken</Name><Count>1</Count></Outcome><Outcome><Name>Novel</Name><Count>1</Count></Outcome></ApnsOutcomeCounts><PnsErrorDetailsUri>https://x/?a=1&amp;b=2</PnsErrorDetailsUri><FcmV1OutcomeCounts><Outcome><Name>Success</Name><Count>4</Count></Outcome></FcmV1OutcomeCounts></NotificationDetails>"#

  @Test("telemetry reads and prints back byte for byte")
  func telemetry() throws {
    let telemetry = try NotificationTelemetry(xml: Data(Self.document.utf8))
    #expect(telemetry.state == .completed && telemetry.state.isFinal)
    #expect(telemetry.body == #"{"aps":{"alert":"<hi>"}}"#)
    #expect(telemetry.tags == "red && blue")
    #expect(telemetry.count(of: .success) == 7)
    #expect(telemetry.count(of: .wrongToken, on: .apns) == 1)
    #expect(telemetry.outcomes[.apns]?["Novel"] == 1)
    #expect(telemetry.xml == Self.document)
  }

  @Test("what is not known is left out, the older name of Gcm is read")
  func sparseTelemetry() throws {
    let telemetry = NotificationTelemetry(notificationID: "n", state: .enqueued)
    #expect(
      telemetry.xml.hasSuffix(
        "<NotificationId>n</NotificationId><State>Enqueued</State></NotificationDetails>"))
    #expect(try NotificationTelemetry(xml: Data(telemetry.xml.utf8)) == telemetry)
    let old =
      "<n:NotificationDetails xmlns:n='x'><n:NotificationId>n</n:NotificationId><n:FcmOutcomeCounts>"
      + "<n:Outcome><n:Name>Success</n:Name><n:Count>1</n:Count></n:Outcome></n:FcmOutcomeCounts>"
      + "</n:NotificationDetails>"
    let read = try NotificationTelemetry(xml: Data(old.utf8))
    #expect(read.outcomes == [.gcm: ["Success": 1]])
    #expect(read.state.rawValue == "Unknown")
  }

  @Test("characters that XML does not know never reach a document")
  func escaping() {
    #expect("a\u{0}b\u{FFFF}<\r\n".xmlEscaped == "a\u{FFFD}b\u{FFFD}&lt;&#xD;\n")
    #expect("ï日".xmlEscaped == "ï日")
  }

  @Test("declarations, comments, sections and references are read")
  func leniency() {
    let text =
      "\u{FEFF}<?xml version='1.0'?>\r\n<!-- <Error> --><p:Error a = '>' b=\"/>\" ><Code/>"
      + "<Detail >a&#x26;b<![CDATA[<c>]]><!-- x -->&#100;&quot;&apos;</Detail ></p:Error>\n"
    let envelope = ErrorEnvelope(xml: Data(text.utf8))
    #expect(envelope?.message == "a&b<c>d\"'")
  }

  @Test(
    "documents that are not well-formed are refused",
    arguments: [
      "<Error><Detail>x</Error></Detail>", "<Error><Detail>x</Detail>", "<Error a></Error>",
      "<Error><Detail>&nbsp;</Detail></Error>", "<Error><Detail>&#xD800;</Detail></Error>",
      "<Error><Detail>x</Detail></Error><Error/>", "<Error><Detail>x</Detail></Error>x", "<>", "<",
      "<!DOCTYPE Error [<!ENTITY a 'b'>]><Error><Detail>&a;</Detail></Error>", "</Error>",
      "<Error><Detail>&amp</Detail></Error>", "<Error a='<'/>", "<Error><![CDATA[x</Error>",
      "<Error a='></Error>",
    ])
  func malformed(text: String) {
    #expect(ErrorEnvelope(xml: Data(text.utf8)) == nil)
  }
}
