import Cryptography
import HubCore

/// One push to be encrypted.
struct WebPushLetter: Sendable {
  /// Its place in the batch.
  let request: Int
  /// Index into the batch's bodies.
  let body: Int
  let recipient: WebPushRecipient
  /// Of the endpoint, in the batch's handles.
  let path: ArraySlice<UInt8>
}

/// Encrypted pushes, or why one could not be encrypted.
struct WebPushSealed: Sendable {
  enum Letter: Sendable {
    /// Where the body stands.
    case sealed(chunk: Int, Range<Int>)
    /// The subscription's key is no point of the curve.
    case badKey
    /// The fault is ours.
    case failed
  }

  private(set) var chunks: [[UInt8]] = []
  /// By place in the list of letters.
  private(set) var letters: [Letter] = []

  /// Encrypting a push costs some 40 microseconds, nearly all of it two multiplications on the
  /// curve: so many go to a task that a batch keeps all cores busy, and few enough that a task costs
  /// nothing beside its work.
  private static let chunkSize = 64

  /// Encrypts every letter for its recipient, on as many threads as the machine lends.
  static func seal(_ letters: [WebPushLetter], bodies: [PushBody]) async -> WebPushSealed {
    let starts = Array(stride(from: 0, to: letters.count, by: chunkSize))
    let chunks = await withTaskGroup(of: Chunk.self) { group in
      for (number, start) in starts.enumerated() {
        let part = letters[start..<min(start + chunkSize, letters.count)]
        group.addTask { Chunk(part, bodies, number: number) }
      }
      var chunks = [Chunk?](repeating: nil, count: starts.count)
      for await chunk in group { chunks[chunk.number] = chunk }
      return chunks.compactMap { $0 }
    }
    var sealed = WebPushSealed()
    for chunk in chunks {
      sealed.chunks.append(chunk.bytes)
      sealed.letters += chunk.letters
    }
    return sealed
  }

  /// What one task encrypts.
  private struct Chunk: Sendable {
    let number: Int
    var bytes: [UInt8] = []
    var letters: [Letter] = []

    init(_ letters: ArraySlice<WebPushLetter>, _ bodies: [PushBody], number: Int) {
      self.number = number
      self.letters.reserveCapacity(letters.count)
      bytes.reserveCapacity(
        letters.reduce(0) { $0 + bodies[$1.body].bytes.count + WebPushEncryptor.overhead })
      let encryptor = try? WebPushEncryptor()
      for letter in letters { add(letter, bodies[letter.body].bytes, encryptor) }
    }

    private mutating func add(
      _ letter: WebPushLetter, _ plaintext: [UInt8], _ encryptor: WebPushEncryptor?
    ) {
      let start = bytes.count
      guard let encryptor else {
        letters.append(.failed)
        return
      }
      do throws(CryptographyError) {
        // A push without a message has no body either.
        if !plaintext.isEmpty {
          try encryptor.encrypt(plaintext, to: letter.recipient, appendingTo: &bytes)
        }
        letters.append(.sealed(chunk: number, start..<bytes.count))
      } catch {
        letters.append(error.kind == .malformed ? .badKey : .failed)
      }
    }
  }
}
