# The formula of a Homebrew tap. A release fills in what stands in braces: see scripts/catalogues.py.
class McpMemory < Formula
  desc "{headline}"
  homepage "{repository}"
  url "{sdist}"
  sha256 "{sdist_sha256}"
  license "{license}"

  depends_on "python@3.13"

  def install
    system "python3.13", "-m", "venv", libexec
    system libexec/"bin/pip", "install", "--constraint", "constraints.txt", "."
    bin.install_symlink libexec/"bin/mcp-memory"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcp-memory --version")
  end
end
