import HTTP2
import Testing

@Suite("Requests and replies", .timeLimit(.minutes(5)))
struct RequestTests {
  @Test("ten thousand requests over one connection all get their own reply")
  func manyRequests() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        let number = Int(request.path.dropFirst()) ?? -1
        let fields = HTTP2FieldList([("apns-id", request.path)])
        connection.respond(
          HTTP2ServerResponse(status: number % 2 == 0 ? 200 : 410, fields: fields),
          to: request.stream)
      }))
    let connection = harness.connect()
    let replies = await connection.send(makeBatch(10_000, replyHeaders: ["apns-id"]))
    #expect(replies.replies.allSatisfy { $0.failure == nil && $0.wasSent })
    let wrong = replies.replies.indices.filter {
      replies.replies[$0].status != ($0 % 2 == 0 ? 200 : 410)
        || replies.value(ofHeader: 0, in: $0) != "/\($0)"
    }
    #expect(wrong.isEmpty)
    #expect(harness.handler.look { $0.requests.count } == 10_000)
    #expect(harness.handler.look { $0.connections.count } == 1)
  }

  @Test("batches of several callers share a connection")
  func severalBatches() async throws {
    let harness = try Harness { configuration, _ in configuration.threads = 2 }
    let connection = harness.connect()
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<20 {
        group.addTask {
          await connection.send(makeBatch(300)).replies.count { $0.status == 200 }
        }
      }
      for await accepted in group { #expect(accepted == 300) }
    }
  }

  @Test("an empty batch returns at once")
  func emptyBatch() async throws {
    let connection = try Harness().connect()
    #expect(await connection.send(makeBatch(0)).replies.isEmpty)
  }

  @Test("what the client writes is what the server reads, duplicates and shared parts included")
  func requestArrivesWhole() async throws {
    let harness = try Harness()
    let connection = harness.connect()
    var batch = HTTP2RequestBatch(method: "PUT", authority: "push.example:2197")
    let fields = batch.addFieldSet([
      HTTP2Field("authorization", "bearer secret", indexing: .never),
      HTTP2Field("apns-topic", "one"), HTTP2Field("apns-topic", "two"),
    ])
    let identifier = batch.addFieldName("apns-id")
    let expiration = batch.addFieldName("apns-expiration", indexing: .allowed)
    let body = batch.write("shared")
    for index in 0..<3 {
      let path = batch.write("/3/device/\(index)")
      let value = batch.write("id-\(index)")
      batch.addRequest(path: path, fields: fields, body: index == 1 ? .empty : body)
      batch.addField(identifier, value: value)
      if index == 2 {
        let zero = batch.write("0")
        batch.addField(expiration, value: zero)
      }
    }
    let replies = await connection.send(batch)
    #expect(replies.replies.map(\.status) == [200, 200, 200])
    let requests = harness.handler.look { $0.requests.sorted { $0.stream < $1.stream } }
    #expect(requests.map(\.path) == ["/3/device/0", "/3/device/1", "/3/device/2"])
    #expect(requests.map(\.method) == ["PUT", "PUT", "PUT"])
    #expect(requests.map(\.authority).allSatisfy { $0 == "push.example:2197" })
    #expect(requests.map { String(decoding: $0.body, as: UTF8.self) } == ["shared", "", "shared"])
    #expect(requests.map { $0.fields.first("apns-id") } == ["id-0", "id-1", "id-2"])
    #expect(requests.map { $0.fields.first("apns-expiration") } == [nil, nil, "0"])
    #expect(requests[0].fields.first("authorization") == "bearer secret")
    let topics = requests[0].fields.indices(of: "apns-topic")
    #expect(
      topics.map { Array(requests[0].fields.value(at: $0)) } == [
        Array("one".utf8), Array("two".utf8),
      ])
  }

  @Test("the body and the wanted headers of a refusal are kept, those of a success are not")
  func replyParts() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        let isBad = request.path == "/1"
        connection.respond(
          HTTP2ServerResponse(
            status: isBad ? 410 : 200,
            fields: HTTP2FieldList(isBad ? [("retry-after", "7"), ("apns-id", "x")] : []),
            body: Array(#"{"reason":"Unregistered"}"#.utf8)),
          to: request.stream)
      }))
    let connection = harness.connect()
    let replies = await connection.send(makeBatch(2, replyHeaders: ["retry-after", "absent"]))
    #expect(replies.replies.map(\.status) == [200, 410])
    #expect(replies.body(of: 0).isEmpty)
    #expect(String(decoding: replies.body(of: 1), as: UTF8.self) == #"{"reason":"Unregistered"}"#)
    #expect(replies.value(ofHeader: 0, in: 0) == nil)
    #expect(replies.value(ofHeader: 0, in: 1) == "7")
    #expect(replies.value(ofHeader: 1, in: 1) == nil)

    let kept = await connection.send(makeBatch(1, keepsSuccessBodies: true))
    #expect(String(decoding: kept.body(of: 0), as: UTF8.self) == #"{"reason":"Unregistered"}"#)
  }

  @Test("large bodies pass a small flow-control window", arguments: [1_000, 16_384])
  func smallWindow(window: Int) async throws {
    let harness = try Harness { configuration, _ in configuration.initialWindowSize = window }
    let connection = harness.connect()
    let body = String(repeating: "0123456789abcdef", count: 3_800)
    let replies = await connection.send(makeBatch(20, body: body))
    #expect(replies.replies.allSatisfy { $0.status == 200 && $0.failure == nil })
    #expect(harness.handler.look { $0.requests.allSatisfy { $0.body == Array(body.utf8) } })
  }

  @Test("a large reply body arrives whole, a larger one is cut and marked")
  func largeReplies() async throws {
    let body = [UInt8](repeating: 0x61, count: 200_000)
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        connection.respond(HTTP2ServerResponse(status: 500, body: body), to: request.stream)
      }))
    let generous = harness.connect { $0.maxReplyBody = 1 << 20 }
    let whole = await generous.send(makeBatch(3))
    #expect(whole.replies.allSatisfy { $0.failure == nil && !$0.isBodyTruncated })
    #expect((0..<3).allSatisfy { whole.body(of: $0).elementsEqual(body) })

    let strict = harness.connect { $0.maxReplyBody = 1000 }
    let cut = await strict.send(makeBatch(1))
    #expect(cut.replies[0].status == 500 && cut.replies[0].isBodyTruncated)
    #expect(cut.replies[0].failure == nil && cut.body(of: 0).count == 1000)
  }

  @Test("a reply header over the limit resets the stream")
  func largeReplyHeader() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        let fields = HTTP2FieldList([("x-long", String(repeating: "x", count: 20_000))])
        connection.respond(HTTP2ServerResponse(status: 200, fields: fields), to: request.stream)
      }))
    let replies = await harness.connect().send(makeBatch(1))
    #expect(replies.replies[0].failure == .reset(code: 2))
  }

  @Test("an answer given later from another thread arrives")
  func laterAnswer() async throws {
    let harness = try Harness(
      TestHandler(answering: { request, connection in
        Task.detached {
          connection.respond(HTTP2ServerResponse(status: 201), to: request.stream)
          connection.respond(HTTP2ServerResponse(status: 500), to: request.stream)
        }
      }))
    let replies = await harness.connect().send(makeBatch(200))
    #expect(replies.replies.allSatisfy { $0.status == 201 && $0.failure == nil })
  }
}
