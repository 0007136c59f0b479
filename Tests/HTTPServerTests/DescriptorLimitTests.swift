import HTTPServer
import Testing

@Suite("The limit of open files")
struct DescriptorLimitTests {
  @Test("it is raised as far as it goes, and not lowered")
  func raise() {
    let first = DescriptorLimit.raise()
    #expect(first >= 256)
    #expect(DescriptorLimit.raise() == first)
  }

  @Test("fewer than the server itself needs are a fault that says how many it needs")
  func fault() {
    #expect(DescriptorLimit.fault(32)?.contains("a server needs 256 at least") == true)
    #expect(DescriptorLimit.fault(255) != nil)
    #expect(DescriptorLimit.fault(256) == nil)
  }

  @Test(
    "connections are counted so that their listener's spare ones fit, too",
    arguments: [(1024, 672), (8192, 6944), (256, 1), (0, 1)])
  func connections(descriptors: Int, connections: Int) {
    #expect(DescriptorLimit.connections(within: descriptors) == connections)
  }
}
